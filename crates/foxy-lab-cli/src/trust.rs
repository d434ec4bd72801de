//! The certificate authorities that the lab's clients trust: the files of `--ca`, the system's
//! authorities, and the authority of an origin in this process.

use super::arguments::path;
use clap::{Arg, ArgMatches};
use foxy_cli::authority_folder;
use foxy_cli::failure::Failure;
use foxy_lab::Origin;
use foxy_lab::wire::tls::Trust;
use std::path::{Path, PathBuf};

pub fn argument() -> Arg {
    path(
        "ca",
        "FILE",
        "Trust the certificate authorities in this PEM file instead of the system's; \
             `foxy ca init` writes such a file, DIR/ca.pem",
    )
}

pub fn of(matches: &ArgMatches, started_here: Option<&Origin>) -> Result<Option<Trust>, Failure> {
    if matches.get_flag("tls") { read(matches, started_here).map(Some) } else { Ok(None) }
}

pub fn read(matches: &ArgMatches, started_here: Option<&Origin>) -> Result<Trust, Failure> {
    let mut trust = Trust::default();
    if let Ok(Some(folder)) = matches.try_get_one::<PathBuf>("ca-dir") {
        add(&mut trust, "--ca-dir", &authority_folder::certificate(folder))?;
    }
    match (matches.get_one::<PathBuf>("ca"), started_here) {
        (Some(file), _) => add(&mut trust, "--ca", file)?,
        (None, None) => trust.add_known(rustls_native_certs::load_native_certs().certs),
        (None, Some(_)) => {}
    }
    if let Some(own) = started_here.and_then(Origin::authority) {
        trust.add_pem(own.as_bytes()).map_err(|error| {
            Failure::Failed(format!("the origin's certificate authority is unusable: {error}"))
        })?;
    }
    Ok(trust)
}

fn add(trust: &mut Trust, option: &str, file: &Path) -> Result<(), Failure> {
    let refuse = |what: String| {
        let file = file.display();
        Failure::Unusable(format!("{option} {file}: {what}; name a file of certificates in PEM"))
    };
    let pem = std::fs::read(file).map_err(|error| refuse(format!("cannot be read: {error}")))?;
    trust.add_pem(&pem).map_err(|error| refuse(error.to_string()))
}
