//! A store of trusted certificates as every Java reads it: the format JKS, version 2, without a
//! password. Big-endian numbers; each name and certificate has its length before it.

use foxy_base::WallTime;

const MAGIC: u32 = 0xfeed_feed;
const VERSION: u32 = 2;
/// What an entry is: a certificate without a key.
const TRUSTED: u32 = 2;

/// The store's bytes. After them a digest could follow, which Java reads only when it is given a
/// password.
pub fn trust_store(certificates: &[&[u8]], now: WallTime) -> Vec<u8> {
    let mut store = Vec::new();
    let number = |store: &mut Vec<u8>, value: u32| store.extend_from_slice(&value.to_be_bytes());
    number(&mut store, MAGIC);
    number(&mut store, VERSION);
    number(&mut store, length(certificates.len()));
    for (index, certificate) in certificates.iter().enumerate() {
        number(&mut store, TRUSTED);
        text(&mut store, &format!("foxy-{index}"));
        store.extend_from_slice(&now.0.to_be_bytes());
        text(&mut store, "X.509");
        number(&mut store, length(certificate.len()));
        store.extend_from_slice(certificate);
    }
    store
}

fn text(store: &mut Vec<u8>, text: &str) {
    let length = u16::try_from(text.len()).expect("our own names are short");
    store.extend_from_slice(&length.to_be_bytes());
    store.extend_from_slice(text.as_bytes());
}

fn length(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_laid_out_as_java_has_it() {
        let store = trust_store(&[b"cert"], WallTime(0x0102));
        let expected: &[&[u8]] = &[
            b"\xfe\xed\xfe\xed\0\0\0\x02\0\0\0\x01",
            b"\0\0\0\x02\0\x06foxy-0",
            b"\0\0\0\0\0\0\x01\x02",
            b"\0\x05X.509\0\0\0\x04cert",
        ];
        assert_eq!(store, expected.concat());
    }
}
