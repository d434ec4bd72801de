//! Chooses a coding by the request's Accept-Encoding (RFC 9110 §12.5.3).

use crate::coding::Coding;
use crate::fields::{Fields, members};

/// The coding that a client prefers, and whether the client accepts a response without coding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acceptance {
    /// The coding that the proxy must apply, because the client prefers it to a response without
    /// coding. `None` means that the client prefers a response without coding.
    pub coding: Option<Coding>,
    /// Whether the client accepts a response without coding.
    pub uncoded: bool,
}

/// The weight (`q`) of a coding (RFC 9110 §12.4.2), in thousandths.
type Weight = u16;

/// Returns the coding to use for a request, among the `offered` codings. Without Accept-Encoding,
/// the client may not know any coding, so it gets the response without coding.
pub fn acceptance(request: &(impl Fields + ?Sized), offered: &[Coding]) -> Acceptance {
    let listed: Vec<(&[u8], Weight)> =
        members(request.values("accept-encoding")).filter_map(weighted).collect();
    let weight_of = |names: &[&str]| {
        let is_named =
            |name: &[u8]| names.iter().any(|own| name.eq_ignore_ascii_case(own.as_bytes()));
        listed.iter().find(|(name, _)| is_named(name)).map(|(_, weight)| *weight)
    };
    let others = weight_of(&["*"]);
    let uncoded = weight_of(&["identity"]);
    let weight = |coding: Coding| match coding {
        Coding::Gzip => weight_of(&["gzip", "x-gzip"]).or(others).unwrap_or(0),
        _ => weight_of(&[coding.name()]).or(others).unwrap_or(0),
    };
    let mut best: Option<(Coding, Weight)> = None;
    for coding in offered.iter().copied() {
        let own = weight(coding);
        if own > best.map_or(0, |(_, weight)| weight) {
            best = Some((coding, own));
        }
    }
    let coding = best.filter(|(_, weight)| *weight >= uncoded.unwrap_or(0));
    Acceptance {
        coding: coding.map(|(coding, _)| coding),
        uncoded: uncoded.or(others.filter(|weight| *weight == 0)) != Some(0),
    }
}

/// Reads the name and the weight in a member of Accept-Encoding, such as `gzip;q=0.5`. Returns
/// `None` for an invalid weight.
fn weighted(member: &[u8]) -> Option<(&[u8], Weight)> {
    let mut parts = member.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
    let name = parts.next()?;
    let weight = parts.find_map(|part| {
        let (name, value) = part.split_at_checked(2)?;
        name.eq_ignore_ascii_case(b"q=").then_some(value)
    });
    Some((name, weight.map_or(Some(1000), thousandths)?))
}

fn thousandths(text: &[u8]) -> Option<Weight> {
    let (whole, rest) = text.split_first()?;
    let digits = match rest {
        [] => rest,
        [b'.', digits @ ..] => digits,
        _ => return None,
    };
    if digits.len() > 3 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let places = digits.iter().chain(&[b'0'; 3]).take(3);
    let fraction = places.fold(0, |sum, digit| sum * 10 + Weight::from(digit - b'0'));
    match (whole, fraction) {
        (b'0', fraction) => Some(fraction),
        (b'1', 0) => Some(1000),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Coding::{Brotli, Gzip, Zstd};

    #[test]
    fn the_client_gets_the_coding_that_it_prefers() {
        let cases: &[(&[&str], Option<Coding>, bool)] = &[
            (&[], None, true),
            (&[""], None, true),
            (&["gzip"], Some(Gzip), true),
            (&["GZip"], Some(Gzip), true),
            (&["x-gzip"], Some(Gzip), true),
            (&["deflate"], None, true),
            (&["gzip, deflate, br, zstd"], Some(Zstd), true),
            (&["gzip, br"], Some(Brotli), true),
            (&["gzip", "br"], Some(Brotli), true),
            (&["gzip;q=0"], None, true),
            (&["gzip;q=0.000, br"], Some(Brotli), true),
            (&["br;q=0.1, gzip;q=0.2"], Some(Gzip), true),
            (&["br ; q=0.2 , gzip ; Q=0.2"], Some(Brotli), true),
            (&["br;q=1.0, gzip;q=1"], Some(Brotli), true),
            (&["br;q=0.999, gzip"], Some(Gzip), true),
            (&["identity"], None, true),
            (&["gzip, identity"], Some(Gzip), true),
            (&["gzip;q=0.5, identity"], None, true),
            (&["gzip;q=0.5, identity;q=0.4"], Some(Gzip), true),
            (&["identity;q=0"], None, false),
            (&["identity;q=0, gzip;q=0.1"], Some(Gzip), false),
            (&["*"], Some(Zstd), true),
            (&["*;q=0"], None, false),
            (&["*;q=0, identity"], None, true),
            (&["*;q=0, identity;q=0.1"], None, true),
            (&["gzip, *;q=0"], Some(Gzip), false),
            (&["zstd;q=0, *;q=0.5"], Some(Brotli), true),
            (&["gzip;q=2"], None, true),
            (&["gzip;q=x, br"], Some(Brotli), true),
            (&["gzip;q=0.1234"], None, true),
            (&["gzip;level=9"], Some(Gzip), true),
            (&["gzip;level=9;q=0"], None, true),
            (&["gzip;q="], None, true),
            (&[", ,gzip"], Some(Gzip), true),
            (&["identity;q=0.5, *;q=0"], None, true),
            (&["zstd;q=0.5, gzip;q=0.5, identity;q=0.5"], Some(Zstd), true),
        ];
        for (lines, coding, uncoded) in cases {
            let fields: Vec<_> = lines.iter().map(|line| ("Accept-Encoding", *line)).collect();
            let expected = Acceptance { coding: *coding, uncoded: *uncoded };
            assert_eq!(acceptance(&fields[..], &Coding::ALL), expected, "{lines:?}");
        }
    }

    #[test]
    fn only_offered_codings_are_chosen_in_the_operators_order() {
        let fields = [("Accept-Encoding", "zstd, br, gzip")];
        for (offered, expected) in [
            (&[][..], None),
            (&[Gzip], Some(Gzip)),
            (&[Brotli, Zstd], Some(Brotli)),
            (&[Gzip, Brotli, Zstd], Some(Gzip)),
        ] {
            assert_eq!(acceptance(&fields[..], offered).coding, expected, "{offered:?}");
        }
    }
}
