//! Blocks of IP addresses such as `10.0.0.0/8` or `::1`: parses, prints and compares them.

use ipnet::IpNet;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// A block of addresses of one IP version (RFC 4632 §3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cidr(IpNet);

/// Reason why a text is not a block of IP addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CidrError {
    /// The text before the slash is not an IP address.
    NoAddress(String),
    /// The text after the slash is not a valid prefix length.
    BadPrefix {
        /// The invalid text after the slash.
        text: String,
        /// Longest prefix for this IP version, in bits.
        longest: u8,
    },
    /// Bits after the prefix are not zero, so the user may have meant another block.
    HostBits {
        /// The text that should be a block of addresses.
        text: String,
        /// The block with the bits after its prefix set to zero.
        meant: Cidr,
    },
}

impl fmt::Display for CidrError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoAddress(text) => write!(
                formatter,
                "address block {text:?} does not start with an IP address; write a block such as \
                 10.0.0.0/8 or ::1"
            ),
            Self::BadPrefix { text, longest } => {
                write!(
                    formatter,
                    "address block {text:?} needs a prefix of 0 to {longest} after the slash"
                )
            }
            Self::HostBits { text, meant } => {
                write!(
                    formatter,
                    "address block {text:?} has bits set after its prefix; write {meant}"
                )
            }
        }
    }
}

impl std::error::Error for CidrError {}

impl Cidr {
    /// Returns the block of `prefix` bits that contains `address`. A prefix longer than the address
    /// is reduced to the length of the address.
    pub fn new(address: IpAddr, prefix: u8) -> Self {
        let whole = IpNet::from(address);
        let prefix = prefix.min(whole.max_prefix_len());
        Self(IpNet::new(address, prefix).unwrap_or(whole).trunc())
    }

    /// Reads a block, and sets the bits after its prefix to zero. An IPv4-mapped IPv6 block becomes
    /// an IPv4 block.
    ///
    /// # Errors
    /// The text is not a block.
    pub fn masked(text: &str) -> Result<Self, CidrError> {
        let block = match text.parse() {
            Err(CidrError::HostBits { meant, .. }) => meant,
            read => read?,
        };
        Ok(match (block.network().to_canonical(), block.prefix().checked_sub(96)) {
            (address @ IpAddr::V4(_), Some(prefix)) if block.network().is_ipv6() => {
                Self::new(address, prefix)
            }
            _ => block,
        })
    }

    /// Returns the first address of the block.
    pub fn network(&self) -> IpAddr {
        self.0.network()
    }

    /// Returns the prefix length: the number of leading bits that all addresses of the block share.
    pub fn prefix(&self) -> u8 {
        self.0.prefix_len()
    }

    /// Whether the block contains `address`. A block of IPv4 addresses contains no IPv6 address,
    /// and vice versa.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.contains(&address)
    }
}

impl FromStr for Cidr {
    type Err = CidrError;

    fn from_str(text: &str) -> Result<Self, CidrError> {
        let trimmed = text.trim();
        let (address, prefix) = match trimmed.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (trimmed, None),
        };
        let address: IpAddr = address.parse().map_err(|_| CidrError::NoAddress(text.into()))?;
        let longest = if address.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            None => longest,
            Some(digits) => plain_number(digits)
                .filter(|&bits| bits <= longest)
                .ok_or_else(|| CidrError::BadPrefix { text: text.into(), longest })?,
        };
        let block = Self::new(address, prefix);
        if block.network() == address {
            Ok(block)
        } else {
            Err(CidrError::HostBits { text: text.into(), meant: block })
        }
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

fn plain_number(digits: &str) -> Option<u8> {
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_read_and_written_alike() {
        let cases = [
            ("10.0.0.0/8", "10.0.0.0/8"),
            ("127.0.0.1", "127.0.0.1/32"),
            (" ::1 ", "::1/128"),
            ("::/0", "::/0"),
        ];
        for (text, expected) in cases {
            assert_eq!(text.parse::<Cidr>().expect(text).to_string(), expected, "{text}");
        }
    }

    #[test]
    fn bad_blocks_say_what_would_be_right() {
        let cases = [
            ("localhost", "does not start with an IP address"),
            ("10.0.0/8", "does not start with an IP address"),
            ("10.0.0.0/33", "prefix of 0 to 32"),
            ("10.0.0.0/", "prefix of 0 to 32"),
            ("10.0.0.0/+8", "prefix of 0 to 32"),
            ("::/129", "prefix of 0 to 128"),
            ("10.1.0.0/8", "write 10.0.0.0/8"),
        ];
        for (text, expected) in cases {
            let message = text.parse::<Cidr>().expect_err(text).to_string();
            assert!(message.contains(expected), "{text}: {message}");
        }
    }

    #[test]
    fn a_masked_block_has_no_bits_after_its_prefix() {
        for (text, expected) in [
            ("10.1.0.7/8", "10.0.0.0/8"),
            ("192.0.2.1", "192.0.2.1/32"),
            ("::ffff:192.0.2.9/120", "192.0.2.0/24"),
            ("::/0", "::/0"),
        ] {
            assert_eq!(Cidr::masked(text).expect(text).to_string(), expected, "{text}");
        }
        assert!(Cidr::masked("10.0.0.0/33").is_err());
    }

    #[test]
    fn a_block_holds_its_addresses_and_no_others() {
        let cases = [
            ("10.0.0.0/8", "10.255.255.255", true),
            ("10.0.0.0/8", "11.0.0.0", false),
            ("0.0.0.0/0", "203.0.113.9", true),
            ("0.0.0.0/0", "::1", false),
            ("fc00::/7", "fdff::1", true),
            ("::/0", "2001:db8::1", true),
            ("::/0", "1.2.3.4", false),
            ("127.0.0.1", "127.0.0.2", false),
        ];
        for (block, address, expected) in cases {
            let block: Cidr = block.parse().expect(block);
            assert_eq!(
                block.contains(address.parse().expect(address)),
                expected,
                "{block} {address}"
            );
        }
    }
}
