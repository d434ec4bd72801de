//! The certificate authority of a lab command. The command reads it from the folder of `--ca-dir`,
//! or creates an authority for this run only.

use super::arguments::path;
use clap::{Arg, ArgMatches};
use foxy_authority::{AuthorityError, MadeCertificate, NewAuthority};
use foxy_base::clock;
use foxy_cli::authority_folder;
use foxy_cli::failure::Failure;
use foxy_lab::wire::tls::Certificates;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

const NEAR: [&str; 2] = ["127.0.0.0/8", "localhost"];
/// The validity of an authority that exists only for one run. It is longer than any run.
const VALIDITY: Duration = Duration::from_secs(30 * 86_400);

pub fn argument() -> Arg {
    path(
        "ca-dir",
        "FOLDER",
        "Terminate TLS, with or without CONNECT, with certificates of the authority in this \
             folder of `foxy ca init --dir`",
    )
}

pub fn of(matches: &ArgMatches) -> Result<Option<Certificates>, Failure> {
    Ok(Authority::given(matches)?.map(|authority| authority.certificates()))
}

/// A certificate authority with its private key. Clones share the key.
#[derive(Clone)]
pub struct Authority {
    pem: Arc<str>,
    made: Arc<foxy_authority::Certificates>,
}

impl Authority {
    pub fn given(matches: &ArgMatches) -> Result<Option<Self>, Failure> {
        let Some(folder) = matches.get_one::<PathBuf>("ca-dir") else { return Ok(None) };
        let authority = authority_folder::open(folder, "--ca-dir", clock::wall())?;
        let unusable = |what: &dyn std::fmt::Display| {
            Failure::Unusable(format!(
                "--ca-dir {}: {what}; make an authority with `foxy ca init`",
                folder.display()
            ))
        };
        let pem = std::fs::read_to_string(authority_folder::certificate(folder));
        let pem = pem.map_err(|error| unusable(&error))?;
        let made =
            foxy_authority::Certificates::new(authority).map_err(|error| unusable(&error))?;
        Ok(Some(Self { pem: pem.into(), made: Arc::new(made) }))
    }

    /// Creates an authority that may sign only for addresses of this machine. The key of the
    /// authority is only in memory.
    pub fn of_this_run() -> Result<Self, Failure> {
        let make = || -> Result<Self, AuthorityError> {
            let hosts = NEAR.map(|host| host.parse().expect("a block and a name"));
            let now = clock::wall();
            let new =
                NewAuthority { name: "foxy lab, one run", hosts: &hosts, now, validity: VALIDITY };
            let made = foxy_authority::make(&new)?;
            let authority =
                foxy_authority::Authority::read(made.certificate.as_bytes(), &made.key, now)?;
            let certificates = foxy_authority::Certificates::new(authority)?;
            Ok(Self { pem: made.certificate.into(), made: Arc::new(certificates) })
        };
        make().map_err(|error| {
            Failure::Failed(format!("cannot make a certificate authority: {error}"))
        })
    }

    pub fn pem(&self) -> &str {
        &self.pem
    }

    pub fn certificates(&self) -> Certificates {
        let made = Arc::clone(&self.made);
        Certificates::new(move |host, now| made.server(host, now).ok())
    }

    pub fn files(&self, host: &str) -> Result<MadeCertificate, AuthorityError> {
        self.made.files(host, clock::wall())
    }
}
