//! Selects the proxies that a command starts, and creates their folders.

use super::{PEERS, Peer};
use crate::arguments::path;
use crate::folder::{COMPARE_PREFIX, remove_leftovers};
use clap::{Arg, ArgMatches};
use foxy_cli::failure::Failure;
use foxy_cli::temporary::Temporary;
use foxy_cli::terminal::{self, Level};
use foxy_report::Record;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

pub struct Named {
    pub installed: Vec<(Peer, PathBuf)>,
    pub left_out: Vec<Record>,
}

pub fn installed<'a>(
    names: impl Iterator<Item = &'a str>,
    able: impl Fn(&Peer) -> Result<(), String>,
) -> Result<Named, Failure> {
    let known = || PEERS.map(|peer| peer.name).join(", ");
    let (mut installed, mut left_out) = (Vec::new(), Vec::new());
    for name in names {
        let peer = Peer::find(name).ok_or_else(|| {
            Failure::Unusable(format!("{name}: no such proxy; the proxies are {}", known()))
        })?;
        match able(&peer).and_then(|()| peer.installed()) {
            Ok(program) => installed.push((peer, program)),
            Err(reason) => {
                terminal::report(
                    Level::Warning,
                    &format!("{name}: {reason}; continuing without this proxy"),
                );
                left_out.push(Record::LeftOut { subject: name.to_owned(), reason });
            }
        }
    }
    if installed.is_empty() {
        return Err(Failure::Unusable(format!(
            "no proxy to compare; name one or more of {}",
            known()
        )));
    }
    Ok(Named { installed, left_out })
}

pub fn folder_argument() -> Arg {
    path(
        "folder",
        "DIR",
        "Folder for the files of running proxies [default: the system's temporary folder]",
    )
}

/// Creates the folder for the proxies, which other users may read. Also removes the folders of
/// killed runs.
pub fn folder(matches: &ArgMatches) -> Result<Temporary, Failure> {
    let base = matches.get_one::<PathBuf>("folder").cloned().unwrap_or_else(std::env::temp_dir);
    folder_in(&base)
}

pub fn folders(matches: &ArgMatches) -> Result<Vec<Temporary>, Failure> {
    let bases: Option<Vec<PathBuf>> =
        matches.get_many("folder").map(|folders| folders.cloned().collect());
    let bases = bases.unwrap_or_else(|| vec![std::env::temp_dir()]);
    let twice = |number: &usize| {
        let real = |base: &PathBuf| base.canonicalize().unwrap_or_else(|_| base.clone());
        bases[..*number].iter().any(|other| real(other) == real(&bases[*number]))
    };
    if let Some(number) = (0..bases.len()).find(twice) {
        let text = format!(
            "--folder {}: named twice; name a folder on each disk",
            bases[number].display()
        );
        return Err(Failure::Unusable(text));
    }
    bases.iter().map(|base| folder_in(base)).collect()
}

fn folder_in(base: &Path) -> Result<Temporary, Failure> {
    let unusable = |what: String| {
        let base = base.display();
        Failure::Unusable(format!(
            "--folder {base}: {what}; name a folder on the disk to be measured"
        ))
    };
    let base = base.canonicalize().map_err(|error| unusable(error.to_string()))?;
    remove_leftovers(&base);
    let folder = Temporary::new(base.join(format!("{COMPARE_PREFIX}{}-run", std::process::id())));
    let made = std::fs::create_dir(folder.path());
    let made =
        made.and_then(|()| std::fs::set_permissions(folder.path(), Permissions::from_mode(0o755)));
    made.map_err(|error| unusable(error.to_string()))?;
    Ok(folder)
}
