//! Recognises URLs whose content never changes: package files, and files whose name has a digest of
//! their content. Such files get a heuristic lifetime (RFC 9111 §4.2.2). A URL with a query is not
//! recognised.

const ENDINGS: [&[u8]; 22] = [
    b".deb",
    b".udeb",
    b".rpm",
    b".apk",
    b".pkg.tar.zst",
    b".pkg.tar.xz",
    b".whl",
    b".crate",
    b".gem",
    b".jar",
    b".aar",
    b".nupkg",
    b".conda",
    b".egg",
    b".tgz",
    b".tar.gz",
    b".tar.bz2",
    b".tar.xz",
    b".tar.zst",
    b".zip",
    b".iso",
    b".msi",
];

/// The digest algorithms that occur in URLs of apt archives and container registries. Each has the
/// number of hexadecimal digits of its digest.
const DIGESTS: [(&[u8], usize); 4] =
    [(b"md5sum", 32), (b"sha1", 40), (b"sha256", 64), (b"sha512", 128)];

/// Returns the URL in a cache key. Returns `None` if the URL has a query.
fn path(target: &[u8]) -> Option<&[u8]> {
    let path = target.split(|&byte| byte == b'\n').next().unwrap_or_default();
    (!path.contains(&b'?')).then_some(path)
}

/// Returns whether a URL names a file of a package or of a release archive. Publishers give a
/// changed file a new name. So without Last-Modified, the file gets the longest heuristic lifetime,
/// a day.
pub(crate) fn is_package(target: &[u8]) -> bool {
    let Some(path) = path(target) else { return false };
    let ends = || ENDINGS.iter().any(|ending| path.to_ascii_lowercase().ends_with(ending));
    ends() || is_crate(path)
}

/// Returns whether a path ends in `/crates/NAME/VERSION/download`, the default form of cargo
/// registries.
fn is_crate(path: &[u8]) -> bool {
    let mut parts = path.rsplit(|&byte| byte == b'/');
    let is_version = |part: &[u8]| {
        part.first().is_some_and(u8::is_ascii_digit)
            && part.iter().filter(|&&byte| byte == b'.').count() >= 2
    };
    parts.next() == Some(b"download")
        && parts.next().is_some_and(is_version)
        && parts.next().is_some_and(|name| !name.is_empty())
        && parts.next() == Some(b"crates")
}

/// Returns whether a URL has a digest of its content:
///
/// - `…/by-hash/SHA256/HEX` of apt
/// - `…/blobs/sha256:HEX` and `…/manifests/sha256:HEX` of container registries
/// - `…/repodata/HEX-NAME` of rpm archives
///
/// For such a URL, the heuristic lifetime does not depend on Last-Modified.
pub(crate) fn is_named_by_digest(target: &[u8]) -> bool {
    let Some(path) = path(target) else { return false };
    let mut parts = path.rsplit(|&byte| byte == b'/');
    let (Some(name), Some(folder)) = (parts.next(), parts.next()) else { return false };
    let digits = |digits: &[u8], length: usize| {
        digits.len() == length && digits.iter().all(u8::is_ascii_hexdigit)
    };
    let is_digest = |algorithm: &[u8], text: &[u8]| {
        DIGESTS
            .iter()
            .any(|(known, length)| known.eq_ignore_ascii_case(algorithm) && digits(text, *length))
    };
    let split =
        |by: u8| name.iter().position(|&byte| byte == by).map(|at| (&name[..at], &name[at + 1..]));
    match folder {
        b"blobs" | b"manifests" => {
            split(b':').is_some_and(|(algorithm, text)| is_digest(algorithm, text))
        }
        b"repodata" => split(b'-').is_some_and(|(text, _)| digits(text, 64) || digits(text, 128)),
        algorithm => parts.next() == Some(b"by-hash") && is_digest(algorithm, name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_packages_are_known_by_their_names() {
        for package in
            ["/pool/x_1.0_amd64.deb", "/pool/x-1.0.TAR.GZ", "/v1/crates/x/1.0.3/download"]
        {
            assert!(is_package(format!("http://a{package}").as_bytes()), "{package}");
        }
        for other in [
            "/x.deb?file=1",
            "/Packages",
            "/deb",
            "/x.zip/",
            "/crates/x/latest/download",
            "/x/1.0.3/download",
        ] {
            assert!(!is_package(format!("http://a{other}").as_bytes()), "{other}");
        }
    }

    #[test]
    fn files_named_by_a_digest_are_known_and_nothing_else_is() {
        let hex = |length: usize| "0aF".repeat(43)[..length].to_owned();
        let (md5, sha1, sha256, sha512) = (hex(32), hex(40), hex(64), hex(128));
        for named in [
            format!("/dists/sid/main/binary-amd64/by-hash/MD5Sum/{md5}"),
            format!("/dists/sid/main/binary-amd64/by-hash/SHA1/{sha1}"),
            format!("/dists/sid/main/binary-amd64/by-hash/SHA256/{sha256}"),
            format!("/dists/sid/by-hash/SHA512/{sha512}"),
            format!("/v2/library/debian/blobs/sha256:{sha256}"),
            format!("/v2/library/debian/manifests/sha512:{sha512}"),
            format!("/fedora/repodata/{sha256}-primary.xml.zst"),
        ] {
            assert!(is_named_by_digest(format!("http://a{named}").as_bytes()), "{named}");
        }
        for other in [
            format!("/dists/sid/by-hash/SHA256/{sha1}"),
            format!("/dists/sid/by-hash/SHA256/{sha256}x"),
            format!("/dists/sid/by-hash/SHA256/{}g", hex(63)),
            format!("/dists/sid/by-hash/SHA256/{sha256}?a"),
            format!("/dists/sid/by-hash/CRC/{}", hex(8)),
            format!("/dists/sid/SHA256/{sha256}"),
            format!("/by-hash/{sha256}"),
            format!("/v2/x/blobs/{sha256}"),
            "/v2/x/manifests/latest".to_owned(),
            "/repodata/repomd.xml".to_owned(),
            "/repodata/x-primary.xml".to_owned(),
            sha256.clone(),
        ] {
            assert!(!is_named_by_digest(format!("http://a{other}").as_bytes()), "{other}");
        }
    }
}
