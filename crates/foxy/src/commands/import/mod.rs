//! `foxy import FILE`: converts the configuration of Squid, nginx or HAProxy into a configuration
//! of foxy. The report lists each directive without an exact equivalent. The new file passes `foxy
//! check`. Where foxy would permit more than the original, the report warns. Then the command
//! writes the new file only with `--accept-losses`.

mod condition_text;
mod draft;
mod handling;
mod haproxy;
mod host_set;
mod nginx;
mod original_files;
mod range_set;
mod report;
mod squid;
mod terms;

use crate::failure::Failure;
use crate::settings;
use crate::settings::complaint::{Complaints, Source};
use crate::terminal::{self, Level};
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use draft::ImportDraft;
use foxy_cli::machine::Machine;
use original_files::OriginalFiles;
use report::{Leftover, commented, grouped};
use serde_json::json;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

/// A proxy program whose configuration `foxy import` can read.
struct OriginalKind {
    name: &'static str,
    /// First words of lines that are typical of this program. They tell which program a file
    /// configures.
    marks: &'static [&'static str],
    import: fn(&str, &OriginalFiles, bool) -> ImportDraft,
}

const KINDS: &[OriginalKind] = &[
    OriginalKind {
        name: "squid",
        marks: &["http_access", "http_port", "acl", "cache_dir", "refresh_pattern", "cache_peer"],
        import: squid::import,
    },
    OriginalKind {
        name: "nginx",
        marks: &["http", "server", "location", "upstream", "proxy_pass", "server_name", "}"],
        import: nginx::import,
    },
    OriginalKind {
        name: "haproxy",
        marks: &["frontend", "backend", "defaults", "default_backend", "use_backend", "bind"],
        import: haproxy::import,
    },
];

pub fn command() -> Command {
    let names = KINDS.iter().map(|kind| kind.name);
    let switch =
        |name: &'static str, help| Arg::new(name).long(name).action(ArgAction::SetTrue).help(help);
    Command::new("import")
        .about("Convert the configuration of another proxy, and list what has no equivalent")
        .arg(
            Arg::new("file")
                .value_name("FILE")
                .required(true)
                .value_parser(value_parser!(PathBuf))
                .help("Configuration to convert, or - for standard input"),
        )
        .arg(
            Arg::new("from")
                .long("from")
                .value_name("PROGRAM")
                .value_parser(PossibleValuesParser::new(names))
                .help(
                    "Proxy program that the file configures [default: recognised by the content]",
                ),
        )
        .arg(
            Arg::new("output")
                .long("output")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .help("File to write [default: standard output]"),
        )
        .arg(switch("force", "Replace the file of --output"))
        .arg(switch(
            "accept-losses",
            "Write the file of --output although the original denies or limits more",
        ))
        .arg(switch("utc", "State that the original's clock runs in UTC, so that hours are kept"))
        .arg(switch("json", "Print the new configuration and the report as one JSON object"))
}

pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let path: &PathBuf = matches.get_one("file").expect("clap requires FILE");
    let content = read(path)?;
    let from = matches.get_one::<String>("from").map(String::as_str);
    let kind = kind_of(&content, from)?;
    let mut draft = (kind.import)(&content, &OriginalFiles::beside(path), matches.get_flag("utc"));
    make_valid(&mut draft)?;
    let text = whole_text(&draft, path);
    if matches.get_flag("json") {
        let leftovers: Vec<_> = draft.leftovers.iter().map(Leftover::as_json).collect();
        let object = json!({ "from": kind.name, "toml": text, "leftovers": leftovers });
        terminal::print(&object.to_string());
    } else {
        terminal::report(Level::Info, grouped(&draft.leftovers).trim_end());
    }
    let opened = draft.leftovers.iter().filter(|leftover| leftover.opens()).count();
    let is_accepted = opened == 0 || matches.get_flag("accept-losses");
    match matches.get_one::<PathBuf>("output") {
        Some(output) if is_accepted => write(output, &text, matches.get_flag("force"))?,
        None if !matches.get_flag("json") => terminal::print(text.trim_end()),
        Some(_) | None => {}
    }
    if is_accepted {
        return Ok(());
    }
    let not_written = match matches.get_one::<PathBuf>("output") {
        Some(output) => format!("; {} is not written without --accept-losses", output.display()),
        None => String::new(),
    };
    let cases = if opened == 1 { "case" } else { "cases" };
    Err(Failure::Missed(format!(
        "the original denies or limits more than the new configuration, in {opened} {cases}; see \
         the report{not_written}"
    )))
}

fn read(path: &Path) -> Result<String, Failure> {
    let bytes = if path == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut std::io::stdin(), &mut bytes).map(|_| bytes)
    } else {
        std::fs::read(path)
    };
    let bytes = bytes.map_err(|error| {
        Failure::Unusable(format!("cannot read {}: {error}; name a readable file", path.display()))
    })?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn kind_of(content: &str, from: Option<&str>) -> Result<&'static OriginalKind, Failure> {
    let score = |kind: &&OriginalKind| {
        let first = |line: &str| line.split_whitespace().next().map(ToOwned::to_owned);
        let words = content.lines().filter_map(first);
        words.filter(|word| kind.marks.contains(&word.as_str())).count()
    };
    let is_vcl = |line: &str| {
        let line = line.trim_start();
        line.starts_with("vcl 4") || line.starts_with("sub vcl_")
    };
    if from.is_none() && content.lines().any(is_vcl) {
        return Err(Failure::Unusable(
            "this is VCL, a program, which foxy import does not read; \
             docs/moving.md#from-varnish shows how to write the configuration"
                .into(),
        ));
    }
    let found = match from {
        Some(name) => KINDS.iter().find(|kind| kind.name == name),
        None if haproxy::has_sections(content) => KINDS.iter().find(|kind| kind.name == "haproxy"),
        None => KINDS.iter().filter(|kind| score(kind) > 0).max_by_key(score),
    };
    found.ok_or_else(|| {
        let names: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
        Failure::Unusable(format!(
            "the file looks like no configuration of {}; name the program with --from",
            names.join(", ")
        ))
    })
}

/// Removes the parts of the draft that `foxy check` would refuse, and reports their directives as
/// leftovers (directives that are not converted). If the draft is an open proxy, its listeners
/// accept this machine alone.
fn make_valid(draft: &mut ImportDraft) -> Result<(), Failure> {
    let machine = Machine { environment: Vec::new(), ..Machine::look() };
    loop {
        let judged = settings::load_text(Path::new("foxy.toml"), &draft.text(), &machine);
        let Err(Complaints(complaints)) = judged else { return Ok(()) };
        let Some(complaint) = complaints.first() else { return Ok(()) };
        let removed = match &complaint.source {
            _ if complaint.message.contains("no setting says which clients") => {
                draft.listen_on_loopback()
            }
            Some(Source::File(place)) => draft.remove_line(place.line, &complaint.message),
            _ => false,
        };
        if !removed {
            return Err(Failure::Failed(format!(
                "the new configuration is not valid: {complaint}"
            )));
        }
    }
}

fn whole_text(draft: &ImportDraft, path: &Path) -> String {
    let (opened, others): (Vec<Leftover>, Vec<Leftover>) =
        draft.leftovers.iter().cloned().partition(Leftover::opens);
    let head = format!("foxy import made this file from {}.\n", path.display());
    let mut text = commented(&head);
    text.push_str(&commented(&grouped(&opened)));
    text.push('\n');
    text.push_str(&draft.text());
    text.push('\n');
    text.push_str(&commented(&grouped(&others)));
    text
}

fn write(path: &Path, text: &str, force: bool) -> Result<(), Failure> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).create_new(!force);
    let written = options.open(path).and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| {
        let remedy = match error.kind() {
            std::io::ErrorKind::AlreadyExists => "; --force replaces the file",
            _ => "",
        };
        Failure::Unusable(format!("cannot write {}: {error}{remedy}", path.display()))
    })
}

#[cfg(test)]
mod tests;
