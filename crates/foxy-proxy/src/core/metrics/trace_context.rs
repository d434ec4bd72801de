//! The request field `traceparent`, with which clients take part in distributed tracing (W3C Trace
//! Context).

/// Name of the request field with the trace context.
pub(crate) const TRACEPARENT: &str = "traceparent";

/// Length in bytes of a field value of version 00: `version-trace-span-flags`. Values of later
/// versions may be longer.
const LENGTH: usize = 55;

/// The first 55 bytes of a valid field value: `version-trace-span-flags`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traceparent([u8; LENGTH]);

impl Traceparent {
    /// Reads a field value. Returns `None` if the value is malformed. Ignores what a later version
    /// of the standard adds after the flags.
    pub fn of(field: &[u8]) -> Option<Self> {
        let text: [u8; LENGTH] = field.get(..LENGTH)?.try_into().ok()?;
        let is_right = |(at, byte): (usize, &u8)| match at {
            2 | 35 | 52 => *byte == b'-',
            _ => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
        };
        let is_well_formed = text.iter().enumerate().all(is_right);
        let ends = match &text[..2] {
            b"00" => field.len() == LENGTH,
            b"ff" => false,
            _ => field.get(LENGTH).is_none_or(|next| *next == b'-'),
        };
        let read = Self(text);
        (is_well_formed && ends && read.trace() != 0 && read.span() != 0).then_some(read)
    }

    /// Returns the first 55 bytes of the field value: `version-trace-span-flags`.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }

    /// Returns the id of the trace as hexadecimal digits.
    pub fn trace_digits(&self) -> &str {
        &self.as_str()[3..35]
    }

    /// Returns the id of the trace.
    pub fn trace(&self) -> u128 {
        u128::from_str_radix(self.trace_digits(), 16).unwrap_or(0)
    }

    /// Returns the id of the client's span.
    pub fn span(&self) -> u64 {
        u64::from_str_radix(&self.as_str()[36..52], 16).unwrap_or(0)
    }

    /// Returns the flags. The lowest bit tells whether the client records the trace.
    pub fn flags(&self) -> u8 {
        u8::from_str_radix(&self.as_str()[53..], 16).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_valid_field_names_trace_span_and_flags() {
        let field = b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let read = Traceparent::of(field).expect("valid");
        assert_eq!(read.as_str().as_bytes(), field);
        assert_eq!(read.trace(), 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736);
        assert_eq!((read.span(), read.flags()), (0x00f0_67aa_0ba9_02b7, 1));
        let later = b"01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-03-more";
        assert_eq!(Traceparent::of(later).map(|read| read.flags()), Some(3));
    }

    #[test]
    fn a_malformed_field_is_refused() {
        let refused: [&[u8]; 10] = [
            b"00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            b"00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            b"00-4bf92f3577b34da6a3ce929d0e0e473\"-00f067aa0ba902b7-01",
            b"00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            b"ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            b"-0-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7--1",
            b"00-4bf92f3577b34da6a3ce929d0e0e4736",
            b"",
        ];
        for field in refused {
            assert_eq!(Traceparent::of(field), None, "{}", field.escape_ascii());
        }
    }
}
