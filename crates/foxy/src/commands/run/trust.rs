//! Writes files that make a command trust an additional certificate authority. The files are in a
//! folder that only this user can read, and contain no private key. foxy removes them when the
//! command ends.

use crate::failure::Failure;
use crate::temporary::Temporary;
use foxy_base::{WallTime, clock};
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

pub struct TrustFiles {
    /// File with all trusted authorities in PEM.
    pub bundle: PathBuf,
    /// File with all trusted authorities in Java's format (JKS).
    pub java: PathBuf,
    /// Start-up file for wget, because some versions of wget read no environment variable for
    /// authorities.
    pub wget: PathBuf,
    /// Configuration file for apt that names the file with all trusted authorities.
    pub apt: PathBuf,
}

impl TrustFiles {
    pub fn in_folder(folder: &Path) -> Self {
        Self {
            bundle: folder.join("bundle.pem"),
            java: folder.join("trust.jks"),
            wget: folder.join("wgetrc"),
            apt: folder.join("apt.conf"),
        }
    }
}

pub struct Trusted<'a> {
    /// Certificate of the additional authority in PEM.
    pub authority: &'a str,
    /// Paths of PEM files with more authorities to trust.
    pub further: &'a [PathBuf],
    /// The user's own start-up files of wget and apt. The files in [`TrustFiles`] take their place,
    /// and include their content.
    pub replaced: [Option<PathBuf>; 2],
}

/// Writes all files of [`TrustFiles`] into a new folder. Dropping the returned value removes the
/// folder.
pub fn write(trusted: &Trusted<'_>) -> Result<Temporary, Failure> {
    let name = format!("foxy-run-{}-{:x}", std::process::id(), clock::wall().0);
    let folder = std::env::temp_dir().join(name);
    let cannot = |path: &Path, error: &std::io::Error| {
        Failure::Unusable(format!(
            "{}: {error}; point TMPDIR to a folder that can be written",
            path.display()
        ))
    };
    DirBuilder::new().mode(0o700).create(&folder).map_err(|error| cannot(&folder, &error))?;
    let folder = Temporary::new(folder);
    let files = TrustFiles::in_folder(folder.path());
    let write = |path: &Path, bytes: &[u8]| {
        std::fs::write(path, bytes).map_err(|error| cannot(path, &error))
    };
    let bundle = bundle(trusted)?;
    let certificates = pem::parse_many(&bundle).map_err(|error| {
        Failure::Unusable(format!("cannot collect the trusted authorities: {error}"))
    })?;
    let certificates: Vec<_> = certificates.iter().map(pem::Pem::contents).collect();
    write(&files.bundle, bundle.as_bytes())?;
    write(&files.java, &trust_store(&certificates, clock::wall()))?;
    let [wget, apt] = &trusted.replaced;
    let earlier =
        wget.as_deref().and_then(|path| std::fs::read_to_string(path).ok()).unwrap_or_default();
    let bundle = files.bundle.display();
    write(&files.wget, format!("{earlier}\nca_certificate = {bundle}\n").as_bytes())?;
    let earlier = apt
        .as_deref()
        .map(|path| format!("#include \"{}\";\n", path.display()))
        .unwrap_or_default();
    write(&files.apt, format!("{earlier}Acquire::https::CAInfo \"{bundle}\";\n").as_bytes())?;
    Ok(folder)
}

/// Returns all trusted authorities in PEM: the system's authorities, the authorities in `further`,
/// and the additional authority.
fn bundle(trusted: &Trusted<'_>) -> Result<String, Failure> {
    let lines = pem::EncodeConfig::new().set_line_ending(pem::LineEnding::LF);
    let mut bundle = String::new();
    for certificate in rustls_native_certs::load_native_certs().certs {
        let block = pem::Pem::new("CERTIFICATE", certificate.to_vec());
        bundle.push_str(&pem::encode_config(&block, lines));
    }
    for file in trusted.further {
        let text = std::fs::read_to_string(file);
        let text = text.map_err(|error| {
            Failure::Unusable(format!("{} (origin-ca): {error}", file.display()))
        })?;
        bundle.push_str(&text);
        bundle.push('\n');
    }
    bundle.push_str(trusted.authority);
    Ok(bundle)
}

const JKS_MAGIC: u32 = 0xfeed_feed;
const JKS_VERSION: u32 = 2;
/// Type of a JKS entry that contains a certificate without a key.
const JKS_TRUSTED_ENTRY: u32 = 2;

/// Builds a file of trusted certificates that every Java version can read (format JKS, version 2,
/// big-endian). The digest at the end is missing. Java checks the digest only if the user gives a
/// password.
fn trust_store(certificates: &[&[u8]], now: WallTime) -> Vec<u8> {
    let mut store = Vec::new();
    let number = |store: &mut Vec<u8>, value: u32| store.extend_from_slice(&value.to_be_bytes());
    number(&mut store, JKS_MAGIC);
    number(&mut store, JKS_VERSION);
    number(&mut store, length(certificates.len()));
    for (index, certificate) in certificates.iter().enumerate() {
        number(&mut store, JKS_TRUSTED_ENTRY);
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
    use rcgen::generate_simple_self_signed;
    use std::os::unix::fs::PermissionsExt;

    fn certificate() -> String {
        generate_simple_self_signed(["a.test".to_owned()]).expect("made").cert.pem()
    }

    #[test]
    fn the_files_hold_every_authority_and_go_with_their_folder() {
        let (own, further) = (certificate(), certificate());
        let place = tempfile::tempdir().expect("a folder");
        let (extra, wgetrc) = (place.path().join("extra.pem"), place.path().join("wgetrc"));
        std::fs::write(&extra, &further).expect("written");
        std::fs::write(&wgetrc, "tries = 3").expect("written");
        let trusted = Trusted {
            authority: &own,
            further: &[extra],
            replaced: [Some(wgetrc), Some("/old.conf".into())],
        };
        let folder = write(&trusted).expect("written");
        let files = TrustFiles::in_folder(folder.path());
        assert_eq!(folder.path().metadata().expect("there").permissions().mode() & 0o777, 0o700);
        let bundle = std::fs::read_to_string(&files.bundle).expect("readable");
        assert!(bundle.contains(&own) && bundle.contains(&further));
        let wget = std::fs::read_to_string(&files.wget).expect("readable");
        assert!(wget.starts_with("tries = 3\nca_certificate = /"), "{wget}");
        let apt = std::fs::read_to_string(&files.apt).expect("readable");
        assert!(apt.starts_with("#include \"/old.conf\";\nAcquire::https::CAInfo \"/"), "{apt}");
        assert!(
            std::fs::read(&files.java)
                .is_ok_and(|store| store.starts_with(&[0xfe, 0xed, 0xfe, 0xed]))
        );
        let path = folder.path().to_owned();
        drop(folder);
        assert!(!path.exists());
    }

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
