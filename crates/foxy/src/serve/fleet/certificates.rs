//! Reads the certificate of this node and the authorities of the other nodes, and reads them again
//! when they change.

use crate::failure::Failure;
use crate::secret_file;
use crate::serve::tls::add_authorities;
use crate::serve::tls::seen::{SeenVersions, versions};
use crate::settings::rows::FleetChapter;
use foxy_proxy::core::client_certificates::{CertificateNeed, ClientAuthorities};
use foxy_proxy::core::live::Live;
use foxy_proxy::core::tls::{ClientCertificates, ClientTls};
use foxy_proxy::upstream::{Authorities, OriginTls, OwnCertificate};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The certificates and keys in the files that the settings of a fleet name.
pub struct OpenCertificates {
    /// The certificate that this node presents to other nodes that connect to it.
    pub own: ClientCertificates,
    pub authorities: ClientAuthorities,
    /// TLS settings with which this node connects to other nodes.
    pub link: OriginTls,
}

impl OpenCertificates {
    /// Reads the node's certificate and key, and the authorities of the other nodes, from the files
    /// that the settings name.
    pub fn read(fleet: &FleetChapter) -> Result<Self, Failure> {
        let name = fleet.node.as_deref().unwrap_or_default();
        let (chain, key) = (certificate(fleet)?, key(fleet)?);
        let mut own = ClientCertificates::default();
        let unusable = |error: String| Failure::Unusable(format!("fleet.certificate: {error}"));
        own.add(&chain, &key).map_err(|error| unusable(error.to_string()))?;
        if !own.has(name) {
            let text =
                format!("the certificate is not for the DNS name `{name}`, this node's name");
            return Err(unusable(text));
        }
        let mut trusted = Authorities::none();
        add_authorities(&mut trusted, &fleet.ca, "fleet.ca")?;
        let presented = OwnCertificate::read(&chain, &key).map_err(unusable)?;
        let link = OriginTls::presenting(presented, trusted).map_err(unusable)?;
        Ok(Self { own, authorities: node_authorities(fleet)?, link })
    }
}

/// The files of a fleet, and the TLS settings made from them.
#[derive(Debug)]
pub struct FleetCertificates {
    fleet: FleetChapter,
    seen: Mutex<SeenVersions>,
    tls: ClientTls,
    link: Live<OriginTls>,
}

impl FleetCertificates {
    pub fn new(fleet: &FleetChapter, tls: ClientTls, link: Live<OriginTls>) -> Self {
        let seen = Mutex::new(SeenVersions::new(versions(files(fleet))));
        Self { fleet: fleet.clone(), seen, tls, link }
    }

    /// Reads all files again if they have changed, and have then stayed the same for a while.
    /// Returns `None` if there is nothing to read.
    pub fn renew(&self) -> Option<Result<(), String>> {
        let now = versions(files(&self.fleet));
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.have_settled(now).then(|| self.reload())
    }

    /// Reads all files again, for the next connections. If a file is invalid, the old content
    /// remains in use.
    pub fn reload(&self) -> Result<(), String> {
        let read = OpenCertificates::read(&self.fleet).map_err(|failure| failure.to_string())?;
        self.tls.replace(read.own);
        self.tls.ask_clients(Some(read.authorities));
        self.link.replace(read.link);
        Ok(())
    }
}

fn files(fleet: &FleetChapter) -> impl Iterator<Item = &Path> {
    let own = [&fleet.certificate, &fleet.key].into_iter().flatten();
    own.chain(&fleet.ca).map(PathBuf::as_path)
}

fn certificate(fleet: &FleetChapter) -> Result<Vec<u8>, Failure> {
    read_public(given(fleet.certificate.as_deref()), "fleet.certificate")
}

fn key(fleet: &FleetChapter) -> Result<Vec<u8>, Failure> {
    let path = given(fleet.key.as_deref());
    secret_file::read(path).map_err(|error| {
        Failure::Unusable(format!("{} (fleet.key): the private key {error}", path.display()))
    })
}

/// Returns the path in a setting that every fleet must have.
fn given(path: Option<&Path>) -> &Path {
    path.expect("`settings::fleet` has refused a fleet without this file")
}

fn node_authorities(fleet: &FleetChapter) -> Result<ClientAuthorities, Failure> {
    let read = |path| read_public(path, "fleet.ca");
    let files: Vec<_> = fleet.ca.iter().map(|path| read(path)).collect::<Result<_, _>>()?;
    let read = ClientAuthorities::read(files.iter().map(Vec::as_slice), CertificateNeed::Required);
    read.map_err(|(number, error)| {
        Failure::Unusable(format!("{} (fleet.ca): {error}", fleet.ca[number].display()))
    })
}

fn read_public(path: &Path, key: &str) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(|error| {
        let path = path.display();
        Failure::Unusable(format!("{path} ({key}): {error}; name a readable file in PEM"))
    })
}
