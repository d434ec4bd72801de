//! `foxy fsck PATH`: verifies every checksum of a store that no process uses, and reports lost
//! content.

use crate::failure::Failure;
use crate::progress::Progress;
use crate::store_file::{self, StoreFile, refusal};
use crate::terminal;
use clap::{Arg, ArgMatches, Command, value_parser};
use foxy_base::ByteSize;
use foxy_cli::json_argument;
use foxy_report::Table;
use foxy_store::record::FORMAT_VERSION;
use foxy_store::superblock::{CopyState, Superblock};
use foxy_store::webcosm::check::{CheckScope, Finding, Findings, Level, Refused, Report};
use serde_json::{Value, json};
use std::path::PathBuf;

pub fn command() -> Command {
    Command::new("fsck")
        .about("Verify every checksum of a store that is not in use, and report lost objects")
        .long_about(
            "Verify every checksum of a store that is not in use, and report lost objects. The \
             command writes nothing. Incomplete data after a kill or a power failure is not \
             damage: the next start of foxy repairs it.\n\n\
             Exit codes: 0 no damage, 1 damage, 2 no store that can be checked, 3 the disk could \
             not be read.",
        )
        .arg(path())
        .arg(json_argument())
}

pub fn path() -> Arg {
    Arg::new("path")
        .value_name("PATH")
        .required(true)
        .value_parser(value_parser!(PathBuf))
        .help("Folder of the store, or the store file in the folder")
}

pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let files = store_file::open(matches.get_one::<PathBuf>("path").expect("required"))?;
    let as_json = matches.get_flag("json");
    let (mut stores, mut failures) = (Vec::new(), Vec::new());
    for file in &files {
        let verdict = verdict(file);
        if as_json {
            stores.push(verdict.json(file));
        } else if !matches!(&verdict, Verdict::Refused(refused) if *refused != Refused::Blank) {
            terminal::print(verdict.text(file).trim_end());
        }
        failures.extend(verdict.failure(file));
    }
    if as_json {
        terminal::print(&json!({ "stores": stores }).to_string());
    }
    let worst = |failure: &Failure| match failure {
        Failure::Missed(_) => 0,
        Failure::Unusable(_) => 1,
        _ => 2,
    };
    failures.into_iter().max_by_key(worst).map_or(Ok(()), Err)
}

enum Verdict {
    Whole(Box<Report>),
    /// The result for a store of a scheme other than webcosm. fsck can verify only the checksums of
    /// its superblock.
    Beginning {
        /// Numbers (0 or 1) of the damaged copies of the superblock.
        damaged: Vec<usize>,
        size: u64,
        /// Number of bytes by which the file is shorter than its superblock says.
        missing: u64,
    },
    Refused(Refused),
}

fn verdict(file: &StoreFile) -> Verdict {
    if !file.is_webcosm() {
        return match file.superblocks() {
            Ok((copies, Superblock { size, .. })) => {
                let missing =
                    if file.is_preallocated() { size.saturating_sub(file.size()) } else { 0 };
                Verdict::Beginning { damaged: damaged(copies), size, missing }
            }
            Err(refused) => Verdict::Refused(refused),
        };
    }
    let mut progress = Progress::new("bytes", Some(file.size()));
    let report =
        file.check(CheckScope { records: true, listed: None }, &mut |done| progress.update(done));
    report.map_or_else(Verdict::Refused, |report| Verdict::Whole(Box::new(report)))
}

impl Verdict {
    fn failure(&self, file: &StoreFile) -> Option<Failure> {
        let path = file.path.display();
        match self {
            Self::Whole(report) => {
                let count = |level| report.findings.count(level);
                if count(Level::Unread) > 0 {
                    return Some(Failure::Failed(format!(
                        "store {path}: a part of the store could not be read"
                    )));
                }
                (count(Level::Damage) > 0)
                    .then(|| Failure::Missed(format!("store {path}: {}", damage(report))))
            }
            Self::Beginning { damaged, missing, .. } => {
                let copy =
                    |number| format!("store {path}: copy {number} of the superblock is damaged");
                let cut = || {
                    format!(
                        "store {path}: {missing} bytes are missing at its end; the records there \
                         are lost"
                    )
                };
                let damage = damaged.first().map(copy);
                damage.or_else(|| (*missing > 0).then(cut)).map(Failure::Missed)
            }
            Self::Refused(Refused::Blank) => None,
            Self::Refused(refused) => Some(refusal(&file.path, *refused)),
        }
    }

    fn text(&self, file: &StoreFile) -> String {
        let schemes: Vec<_> = file.schemes().iter().map(ToString::to_string).collect();
        let about = format!("{}: {}", file.path.display(), schemes.join(" or "));
        match self {
            Self::Whole(report) => {
                let size = ByteSize(report.superblock.size);
                let mut text = format!("{about}, {size}, format version {FORMAT_VERSION}\n");
                if !report.findings.kept.is_empty() {
                    text.push('\n');
                    text.push_str(&table(&report.findings));
                    text.push('\n');
                }
                text.push_str(&sums(report));
                text
            }
            Self::Beginning { damaged, size, .. } => {
                let state = match damaged.first() {
                    Some(number) => {
                        format!(
                            "copy {number} of the superblock is damaged; foxy uses the other copy"
                        )
                    }
                    None => "the superblock is whole".into(),
                };
                let size = ByteSize(*size);
                format!(
                    "{about}, {size}, format version {FORMAT_VERSION}\n{state}; the records of \
                     this scheme are verified only when they are read"
                )
            }
            Self::Refused(refused) => format!("{about}\n{refused}"),
        }
    }

    fn json(&self, file: &StoreFile) -> Value {
        let schemes: Vec<_> = file.schemes().iter().map(ToString::to_string).collect();
        let path = file.path.display().to_string();
        let mut value = json!({ "file": path, "schemes": schemes, "size": file.size() });
        let more = match self {
            Self::Whole(report) => json!({
                "looked_over": "all",
                "damage": report.findings.count(Level::Damage),
                "normal": report.findings.count(Level::Normal),
                "unread": report.findings.count(Level::Unread),
                "records": report.live_records(),
                "verified_bytes": report.verified_bytes,
                "findings": report.findings.kept.iter().map(finding).collect::<Vec<_>>(),
                "findings_left_out": report.findings.left_out,
            }),
            Self::Beginning { damaged, missing, .. } => {
                let damage = damaged.len() + usize::from(*missing > 0);
                json!({ "looked_over": "superblocks", "damage": damage, "missing": missing })
            }
            Self::Refused(refused) => {
                json!({ "looked_over": "nothing", "why": refused.to_string() })
            }
        };
        if let (Value::Object(value), Value::Object(more)) = (&mut value, more) {
            value.extend(more);
        }
        value
    }
}

/// Returns the numbers of the damaged superblock copies. If the second copy is blank, it is not
/// damaged: foxy writes it later than the first copy.
fn damaged(copies: [CopyState; 2]) -> Vec<usize> {
    let is_well = |number, copy| match copy {
        CopyState::Sound(_) => true,
        CopyState::Blank => number == 1,
        CopyState::Damaged | CopyState::OtherVersion(_) => false,
    };
    copies
        .into_iter()
        .enumerate()
        .filter(move |(number, copy)| !is_well(*number, *copy))
        .map(|(number, _)| number)
        .collect()
}

const fn word(level: Level) -> &'static str {
    match level {
        Level::Normal => "normal",
        Level::Damage => "damage",
        Level::Unread => "unread",
    }
}

pub fn finding(finding: &Finding) -> Value {
    json!({
        "at": finding.at,
        "length": finding.length,
        "segment": finding.slot,
        "reason": finding.reason.name(),
        "level": word(finding.level),
        "misses": finding.misses,
        "what": finding.reason.to_string(),
        "means": finding.reason.meaning(finding.misses),
    })
}

pub fn table(findings: &Findings) -> String {
    let mut table = Table::new(&["byte", "bytes", "segment", "", "what it is", "what it means"]);
    for Finding { at, length, slot, reason, level, misses } in &findings.kept {
        let slot = slot.map_or_else(String::new, |slot| slot.to_string());
        let level = word(*level).to_owned();
        table.row(&[
            at.to_string(),
            length.to_string(),
            slot,
            level,
            reason.to_string(),
            reason.meaning(*misses),
        ]);
    }
    let mut text = table.render();
    if findings.left_out > 0 {
        text.push_str(&format!("and {} more\n", findings.left_out));
    }
    text
}

fn damage(report: &Report) -> String {
    match report.findings.count(Level::Damage) {
        0 => "no damage".into(),
        1 => "1 finding of damage".into(),
        many => format!("{many} findings of damage"),
    }
}

fn sums(report: &Report) -> String {
    let (count, damage) = (|level| report.findings.count(level), damage(report));
    let mut text = format!(
        "{} records, {} verified: {damage}",
        report.live_records(),
        ByteSize(report.verified_bytes)
    );
    for (level, what) in
        [(Level::Normal, "left by a kill or a power failure"), (Level::Unread, "could not be read")]
    {
        if count(level) > 0 {
            text.push_str(&format!(", {} {what}", count(level)));
        }
    }
    text
}
