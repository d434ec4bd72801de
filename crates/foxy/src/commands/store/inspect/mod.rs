//! `foxy store inspect PATH`: shows which records and segments a store has on disk. No process may
//! use the store meanwhile.

mod json;
mod placed;
mod text;

use crate::commands::fsck;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::store_file::{self, StoreFile, refusal};
use crate::terminal;
use clap::{Arg, ArgMatches, Command, value_parser};
use foxy_cli::json_argument;
use foxy_store::superblock::{CopyState, Superblock};
use foxy_store::webcosm::check::{CheckScope, Refused, Report};
use placed::Placed;
use std::path::PathBuf;

pub fn command() -> Command {
    Command::new("inspect")
        .about("Show the superblocks, journal and segments of a store that is not in use")
        .arg(fsck::path())
        .arg(
            Arg::new("segment")
                .long("segment")
                .value_name("N")
                .value_parser(value_parser!(u32))
                .help("List the records of the segment with this number"),
        )
        .arg(json_argument())
}

struct Inspected<'a> {
    file: &'a StoreFile,
    copies: [CopyState; 2],
    superblock: Superblock,
    /// The result of the check of a webcosm store.
    report: Option<Box<Report>>,
    /// The segments and records of a store whose scheme is not webcosm, but also has segments.
    placed: Option<Placed>,
    listed: Option<u32>,
}

pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let files = store_file::open(matches.get_one::<PathBuf>("path").expect("required"))?;
    let listed = matches.get_one::<u32>("segment").copied();
    let mut inspected = Vec::new();
    for file in &files {
        match inspect(file, listed)? {
            Some(found) => inspected.push(found),
            None => terminal::print(&format!("{}: {}", file.path.display(), Refused::Blank)),
        }
    }
    if matches.get_flag("json") {
        terminal::print(&json::of(&inspected).to_string());
    } else {
        inspected.iter().for_each(|found| terminal::print(text::of(found).trim_end()));
    }
    Ok(())
}

/// Returns the contents of a store. `listed` is the segment whose records the user wants to see.
/// Returns `None` if foxy has not used the store yet.
fn inspect(file: &StoreFile, listed: Option<u32>) -> Result<Option<Inspected<'_>>, Failure> {
    let refused = |refused| refusal(&file.path, refused);
    let (copies, superblock) = match file.superblocks() {
        Err(Refused::Blank) => return Ok(None),
        found => found.map_err(refused)?,
    };
    let mut inspected = Inspected { file, copies, superblock, report: None, placed: None, listed };
    if file.is_webcosm() {
        let mut progress = Progress::new("bytes", None);
        let scope = CheckScope { records: false, listed };
        let report = file.check(scope, &mut |done| progress.update(done)).map_err(refused)?;
        inspected.report = Some(Box::new(report));
    } else if file.has_layout() {
        inspected.placed = Some(Placed::read(file, &superblock, listed)?);
    }
    Ok(Some(inspected))
}

/// Returns the name of a size class: `packed` for small records that share pages, otherwise the
/// number of pages that a record needs.
fn class_name(class: usize) -> String {
    match class {
        0 => "packed".into(),
        1 => "1 page".into(),
        pages @ 2..=32 => format!("{pages} pages"),
        class => format!("{} to {} pages", 25 + (class - 32) * 8, 32 + (class - 32) * 8),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
