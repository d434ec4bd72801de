//! `foxy store map PATH`: shows the segments of a store on its disk, and which of them are free.
//! Also shows how much of each segment live records use. A request can find a live record. No
//! process may use the store meanwhile.

mod page;
mod text;

use crate::commands::fsck;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::serve::dashboard::map_json::survey_as_json;
use crate::store_at_rest::StoreAtRest;
use crate::store_file::{self, StoreFile, refusal};
use crate::terminal;
use clap::{Arg, ArgMatches, Command, value_parser};
use foxy_base::clock;
use foxy_cli::json_argument;
use foxy_store::map::Survey;
use foxy_store::webcosm::check::{CheckScope, Refused};
use serde_json::{Value, json};
use std::path::PathBuf;

pub fn command() -> Command {
    Command::new("map")
        .about("Show the segments of a store that is not in use, and how much of each is live")
        .long_about(
            "Show the segments of a store that is not in use, and how much of each is live. The \
             dashboard on the admin address shows the same map of a store in use. A scheme that \
             keeps each object in a file of its own, such as ufs, has no map.",
        )
        .arg(fsck::path())
        .arg(
            Arg::new("html")
                .long("html")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .help("Write the map as a web page that needs no other file"),
        )
        .arg(json_argument())
}

struct StoreMap<'a> {
    file: &'a StoreFile,
    survey: Survey,
}

impl StoreMap<'_> {
    fn as_json(&self) -> Value {
        let mut value = survey_as_json(&self.survey, clock::wall());
        value["file"] = self.file.path.display().to_string().into();
        value
    }
}

pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let path = matches.get_one::<PathBuf>("path").expect("required");
    let files = store_file::open(path)?;
    let mut maps = Vec::new();
    for file in files.iter().filter(|file| file.has_layout()) {
        match survey(file)? {
            Some(survey) => maps.push(StoreMap { file, survey }),
            None => terminal::print(&format!("{}: {}", file.path.display(), Refused::Blank)),
        }
    }
    if !files.iter().any(StoreFile::has_layout)
        && let Some(file) = files.first()
    {
        return Err(Failure::Unusable(file.without_layout()));
    }
    let values = || maps.iter().map(StoreMap::as_json).collect::<Vec<_>>();
    if let Some(at) = matches.get_one::<PathBuf>("html") {
        std::fs::write(at, page::of(&values()))
            .map_err(|error| Failure::Failed(format!("cannot write {}: {error}", at.display())))?;
        terminal::print(&format!("wrote {}", at.display()));
    } else if matches.get_flag("json") {
        terminal::print(&json!({ "stores": values() }).to_string());
    } else {
        maps.iter().for_each(|map| terminal::print(text::of(map).trim_end()));
    }
    Ok(())
}

/// Returns the map of a store, or `None` if foxy has not used the store yet.
fn survey(file: &StoreFile) -> Result<Option<Survey>, Failure> {
    let found = if file.is_webcosm() {
        let mut progress = Progress::new("bytes", None);
        let scope = CheckScope { records: false, listed: None };
        file.check(scope, &mut |done| progress.update(done)).map(|report| report.survey)
    } else {
        match file.superblocks() {
            Err(refused) => Err(refused),
            Ok((_, superblock)) => match StoreAtRest::open(file, &superblock) {
                Err(unopened) => return Err(unopened.failure(file)),
                Ok(store) => Ok(store.survey()),
            },
        }
    };
    match found {
        Err(Refused::Blank) => Ok(None),
        Err(refused) => Err(refusal(&file.path, refused)),
        Ok(survey) => Ok(Some(survey)),
    }
}
