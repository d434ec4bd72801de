//! `--ca-dir`: the authority with whose certificates a command of the lab ends TLS.

use super::arguments::path;
use crate::authority_folder;
use crate::failure::Failure;
use clap::{Arg, ArgMatches};
use foxy_base::clock;
use foxy_lab::tls::Certificates;
use foxy_proxy::intercept;
use std::path::PathBuf;

/// The folder.
pub fn argument() -> Arg {
    path(
        "ca-dir",
        "FOLDER",
        "End TLS, with or without CONNECT, by certificates of this authority, as `foxy ca init --dir` makes it",
    )
}

/// The certificates, if the folder is given.
///
/// # Errors
/// When the authority in it cannot be used.
pub fn of(matches: &ArgMatches) -> Result<Option<Certificates>, Failure> {
    let Some(folder) = matches.get_one::<PathBuf>("ca-dir") else { return Ok(None) };
    let authority = authority_folder::open(folder, "--ca-dir", clock::wall())?;
    let made = intercept::Certificates::new(authority)
        .map_err(|error| Failure::Failed(format!("--ca-dir {}: {error}", folder.display())))?;
    Ok(Some(Certificates::new(move |host, now| made.server(host, now).ok())))
}
