//! Compares a 200 response to HEAD with the stored response to GET (RFC 9111 §4.3.5). The
//! comparison shows whether the stored response is outdated.

use crate::fields::{Fields, members};

/// The result of comparing a response to HEAD with a stored response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadSays {
    /// The response to HEAD and the stored response describe the same content.
    Same,
    /// The response to HEAD describes other content, so the stored response is outdated.
    Another,
    /// The response to HEAD has no validator, so it proves nothing.
    Nothing,
}

/// Fields with digests of the complete content, each a list with one member for each algorithm (RFC
/// 9530 §3, RFC 3230). `Content-Digest` is not in this list: in a response to HEAD, it may be the
/// digest of an empty body.
const DIGESTS: [&str; 2] = ["repr-digest", "digest"];

/// Compares a response to HEAD with a stored response. The result is `Same` if there is a
/// validator, and all validators, digests and the length match. Without a validator, equal lengths
/// prove nothing, because another body may have the same length.
pub fn head_says(
    answer: &(impl Fields + ?Sized),
    stored: &(impl Fields + ?Sized),
    stored_length: u64,
) -> HeadSays {
    let validators = || ["etag", "last-modified"].into_iter().filter(|name| answer.has(name));
    let length = |text: &[u8]| std::str::from_utf8(text).ok()?.trim().parse::<u64>().ok();
    let as_long = !answer.has("content-length")
        || answer
            .single("content-length")
            .and_then(length)
            .is_some_and(|length| length == stored_length);
    if !as_long
        || !validators().all(|name| answer.values(name).eq(stored.values(name)))
        || DIGESTS.iter().any(|name| contradict(name, answer, stored))
    {
        return HeadSays::Another;
    }
    if validators().next().is_some() { HeadSays::Same } else { HeadSays::Nothing }
}

/// Returns whether two responses have different digests for the same algorithm.
fn contradict(
    name: &'static str,
    answer: &(impl Fields + ?Sized),
    stored: &(impl Fields + ?Sized),
) -> bool {
    let differs = |(algorithm, digest): (&[u8], &[u8])| {
        digests(name, stored)
            .any(|(other, stored)| other.eq_ignore_ascii_case(algorithm) && stored != digest)
    };
    digests(name, answer).any(differs)
}

/// Returns the pairs of algorithm and digest in a field. Each member is split at its first `=`.
fn digests<'a>(
    name: &'static str,
    fields: &'a (impl Fields + ?Sized),
) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
    members(fields.values(name)).filter_map(|member| {
        let at = member.iter().position(|&byte| byte == b'=')?;
        Some((member[..at].trim_ascii(), member[at + 1..].trim_ascii()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use HeadSays::{Another, Nothing, Same};

    type Lines<'a> = &'a [(&'a str, &'a str)];

    fn check(stored: Lines<'_>, cases: &[(Lines<'_>, HeadSays)]) {
        for (answer, expected) in cases {
            assert_eq!(head_says(*answer, stored, 5), *expected, "{answer:?} {stored:?}");
        }
    }

    #[test]
    fn a_head_must_have_a_validator_of_what_is_stored_and_no_other() {
        check(
            &[("ETag", "\"a\""), ("Last-Modified", "x")],
            &[
                (&[("ETag", "\"a\""), ("Last-Modified", "x"), ("Content-Length", "5")], Same),
                (&[("ETag", "\"a\"")], Same),
                (&[("Last-Modified", "x")], Same),
                (&[], Nothing),
                (&[("ETag", "\"b\"")], Another),
                (&[("ETag", "W/\"a\"")], Another),
                (&[("ETag", "\"a\""), ("Last-Modified", "y")], Another),
                (&[("ETag", "\"b\""), ("Last-Modified", "x")], Another),
                (&[("ETag", "\"a\""), ("ETag", "\"a\"")], Another),
            ],
        );
        check(
            &[("ETag", "W/\"a\"")],
            &[(&[("ETag", "W/\"a\"")], Same), (&[("Last-Modified", "x")], Another)],
        );
        check(&[], &[(&[("ETag", "\"a\"")], Another), (&[], Nothing)]);
    }

    #[test]
    fn another_length_means_another_body_and_an_equal_length_proves_nothing() {
        let stored: Lines<'_> = &[("ETag", "\"a\"")];
        let cases: [(&str, HeadSays, HeadSays); 3] =
            [("5", Nothing, Same), ("6", Another, Another), ("five", Another, Another)];
        for (length, alone, with_tag) in cases {
            let lines = [("ETag", "\"a\""), ("Content-Length", length)];
            check(stored, &[(&lines[1..], alone), (&lines[..], with_tag)]);
        }
    }

    #[test]
    fn a_head_with_another_digest_by_the_same_algorithm_is_of_another_body() {
        check(
            &[
                ("ETag", "\"a\""),
                ("Repr-Digest", "sha-256=:AA==:, sha-512=:BB==:"),
                ("Digest", "MD5=CC=="),
            ],
            &[
                (&[("Repr-Digest", "sha-256=:AA==:")], Nothing),
                (&[("Repr-Digest", "sha-256=:DD==:")], Another),
                (&[("Repr-Digest", "sha-256=:AA==:,  sha-512=:DD==:")], Another),
                (&[("Repr-Digest", "sha-384=:DD==:")], Nothing),
                (&[("Digest", "md5=DD==")], Another),
                (&[("Content-Digest", "sha-256=:DD==:")], Nothing),
                (&[("ETag", "\"a\""), ("Repr-Digest", "sha-256=:AA==:")], Same),
                (&[("ETag", "\"a\""), ("Repr-Digest", "sha-256=:DD==:")], Another),
            ],
        );
        check(&[], &[(&[("Repr-Digest", "sha-256=:DD==:")], Nothing)]);
    }
}
