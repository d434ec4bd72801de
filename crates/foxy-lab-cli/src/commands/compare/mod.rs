//! `foxy compare`: sends the same workloads to several proxies on this machine, one proxy after the
//! other.

mod chosen;
mod context;
mod measured;
mod outputs;
mod scenario;
mod trial;
mod wisconsin;

use crate::arguments::{count, option, path, switch};
use crate::bars::Bars;
use crate::experiment::{self, Flag, flags};
use crate::origin;
use crate::peers::up::subject as subject_record;
use crate::peers::{PEERS, Peer, choice};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use context::{Trial, TrialContext};
use foxy_cli::failure::Failure;
use foxy_cli::signals::interrupted;
use foxy_cli::temporary::Temporary;
use foxy_cli::terminal::{self, Level};
use foxy_report::{Measurable, Record, comparison};
use outputs::Records;
use scenario::{SCENARIOS, Scenario};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use trial::TrialFindings;

const LONG: &str = "Run the same workloads through several proxies on this machine, one after the other, repeat by repeat. Each proxy \
starts without a cache, as a reverse proxy in front of the verifying origin. The command measures CPU time per request, rates, \
latencies, hits, memory and bytes on disk, and checks every body byte. Load generator, origin and proxy share the cores. So compare \
only values of one table, and run nothing else on the machine meanwhile. As root the command also measures disk hits with limited \
memory and a dropped page cache; the proxies then run as the user nobody.\n\n\
The command writes records.jsonl, report.html, summary.md and junit.xml to the folder of --out. --report writes the last three files \
again. Conditions of --fail-if can name proxy and workload, such as errors>0, foxy/hit_ratio<0.9 and \
fill/foxy/cpu_us_per_request_ratio_to_nginx>0.8.";

/// Arguments that only a new run can have. The command refuses them together with `--report`, which
/// reports an earlier run.
const OF_A_RUN: [&str; 10] = [
    "proxy", "workload", "out", "quick", "repeats", "seconds", "clients", "rate", "folder", "seed",
];

pub fn command() -> Command {
    let workloads: String =
        SCENARIOS.iter().map(|scenario| format!(" {}", scenario.name)).collect();
    let proxies: String = PEERS.iter().map(|peer| format!(" {}", peer.name)).collect();
    Command::new("compare")
        .about("Send the same requests through several proxies, and compare speed and resources")
        .long_about(LONG)
        .after_help(format!("Proxies:{proxies}\nWorkloads:{workloads}"))
        .arg(
            Arg::new("proxy")
                .value_name("PROXY")
                .num_args(1..)
                .help("Proxies to compare; the first proxy is the baseline"),
        )
        .arg(
            option("workload", "NAME", "Workload to run; can be repeated [default: memory-hit to large in the list below]")
                .action(ArgAction::Append),
        )
        .arg(path("out", "DIR", "Write records and reports to this folder"))
        .arg(
            path("report", "DIR", "Write the reports of the earlier comparison in this folder again")
                .conflicts_with_all(OF_A_RUN),
        )
        .arg(switch(
            "quick",
            "Run a short comparison without repeats: a minute or two, but little evidence",
        ))
        .arg(
            option("repeats", "N", "Number of repeats of each trial [default: 3, with --quick 1]")
                .value_parser(value_parser!(u32).range(1..=100)),
        )
        .arg(
            option("seconds", "N", "Duration of a hit measurement in seconds [default: 10, with --quick 2]")
                .value_parser(count()),
        )
        .arg(
            option("clients", "N", "Number of client connections")
                .default_value("64")
                .value_parser(value_parser!(u16).range(1..)),
        )
        .arg(
            option(
                "rate",
                "N",
                "Also measure latency at this number of requests per second, sent without waiting for \
             answers; can be repeated",
            )
            .action(ArgAction::Append)
            .value_parser(value_parser!(u32).range(1..)),
        )
        .arg(choice::folder_argument())
        .args(flags([Flag::Seed, Flag::FailIf("fill/foxy/errors>0")]))
}

pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    if let Some(folder) = matches.get_one::<PathBuf>("report") {
        let records = comparison::with_results(outputs::read(folder)?);
        return conclude(matches, folder, &records, &[]);
    }
    let Some(out) = matches.get_one::<PathBuf>("out") else {
        return Err(Failure::Unusable(
            "--out DIR is missing: name the folder for records and reports".into(),
        ));
    };
    chosen::named_once(matches)?;
    let scenarios = chosen::scenarios(matches)?;
    let names = matches.get_many::<String>("proxy").into_iter().flatten();
    let peers = choice::installed(names.map(String::as_str), |_| Ok(()))?;
    let measurable = chosen::measurable(matches, &scenarios, &peers.installed);
    Bars::of(matches, measurable.clone())?;
    let interrupted = interrupted()?;
    let (folder, context) = context(matches, &interrupted)?;
    chosen::provide_descriptors(&scenarios, context.quick, context.clients)?;
    let mut records = Records::begin(out)?;
    records.add(vec![Record::Setup(experiment::setup(matches))])?;
    records.add(peers.left_out)?;
    let repeats =
        matches.get_one::<u32>("repeats").copied().unwrap_or(if context.quick { 1 } else { 3 });
    let complete = all_trials(&context, &peers.installed, &scenarios, repeats, &mut records)?;
    drop(folder);
    if !complete {
        let all = comparison::with_results(records.all().to_vec());
        outputs::report(out, &all, std::iter::empty(), &[])?;
        let out = out.display();
        return Err(Failure::Failed(format!(
            "compare: stopped by a signal; the results so far are in {out}, marked incomplete"
        )));
    }
    let results = comparison::summarise(records.all());
    records.add(results)?;
    let concluded = conclude(
        matches,
        out,
        &[records.all(), &[Record::End { held: true }]].concat(),
        &measurable,
    );
    records.add(vec![Record::End { held: concluded.is_ok() }])?;
    concluded
}

fn context(
    matches: &ArgMatches,
    interrupted: &Arc<AtomicBool>,
) -> Result<(Temporary, TrialContext), Failure> {
    let folder = choice::folder(matches)?;
    let quick = matches.get_flag("quick");
    let seconds = matches.get_one::<u64>("seconds").copied().unwrap_or(if quick { 2 } else { 10 });
    let context = TrialContext {
        folder: folder.path().to_path_buf(),
        origin: origin::start("compare", 1)?,
        quick,
        time: Duration::from_secs(seconds),
        clients: usize::from(*matches.get_one::<u16>("clients").expect("has a default")),
        rates: matches.get_many("rate").into_iter().flatten().copied().collect(),
        seed: experiment::seed(matches),
        interrupted: Arc::clone(interrupted),
        said: AtomicBool::new(false),
    };
    Ok((folder, context))
}

/// Runs all trials (each with one proxy and one workload). Returns false if a signal stopped the
/// command.
fn all_trials(
    context: &TrialContext,
    peers: &[(Peer, PathBuf)],
    scenarios: &[Scenario],
    repeats: u32,
    records: &mut Records,
) -> Result<bool, Failure> {
    let all = peers.len() * scenarios.len() * repeats as usize;
    let mut number = 0;
    for scenario in scenarios {
        for repeat in 1..=repeats {
            for (peer, program) in peers {
                number += 1;
                let label = format!("[{number}/{all}] {} {repeat} {}", scenario.name, peer.name);
                let trial = Trial { peer: *peer, program, scenario: *scenario, repeat, label };
                let result = trial::run(&trial, context);
                if context.interrupted.load(Relaxed) {
                    records.add(keep(&trial, context, Err("stopped by a signal".into())))?;
                    return Ok(false);
                }
                records.add(keep(&trial, context, result))?;
            }
        }
    }
    Ok(true)
}

fn keep(
    trial: &Trial,
    context: &TrialContext,
    result: Result<TrialFindings, String>,
) -> Vec<Record> {
    let subject = trial.peer.name.to_owned();
    let found = match result {
        Ok(found) => found,
        Err(why) => {
            terminal::report(Level::Warning, &format!("{}: {why}", trial.label));
            let reason = format!("{}, repeat {}: {why}", trial.scenario.name, trial.repeat);
            return vec![Record::FailedRun { subject, reason }];
        }
    };
    terminal::print(&format!("{}: {}", trial.label, in_short(&found.records)));
    let mut records = found.records;
    if trial.repeat == 1 {
        // Paths that the record must not contain. A trial with its own disk mounts the disk in the
        // common folder, so the list also has that folder.
        let folders = [&*context.folder.join(trial.peer.name), &*context.folder];
        let mut set_up = subject_record(
            &trial.peer,
            trial.program,
            trial.peer.name,
            trial.scenario.name,
            &found.plan,
            &folders,
        );
        set_up.notes.extend(found.notes);
        records.push(Record::Subject(set_up));
    }
    records
}

fn in_short(records: &[Record]) -> String {
    let value = |name: &str| {
        records.iter().find_map(|record| match record {
            Record::Measure(measure) if measure.name == name => Some(measure.value),
            _ => None,
        })
    };
    let shown = [
        ("cpu_us_per_request", "", " µs CPU/request"),
        ("requests_per_second", "", " requests/s"),
        ("hit_ratio", "hit ratio ", ""),
        ("resident_after_fill", "hit ratio of the newest ", ""),
        ("wrong_bytes", "", " wrong bytes"),
        ("errors", "", " errors"),
    ];
    let parts = shown.iter().filter_map(|(name, before, after)| {
        Some(format!("{before}{}{after}", foxy_report::number::significant(value(name)?, 3)))
    });
    parts.collect::<Vec<_>>().join(", ")
}

fn conclude(
    matches: &ArgMatches,
    folder: &std::path::Path,
    records: &[Record],
    measurable: &[Measurable],
) -> Result<(), Failure> {
    let mut missed = outputs::report(folder, records, Bars::given(matches), measurable)?;
    let incomplete = comparison::is_incomplete(records);
    if incomplete {
        terminal::print(comparison::INCOMPLETE);
    }
    terminal::print(comparison::overview(records).trim_end());
    terminal::print(comparison::tables(records).trim_end());
    for sentence in comparison::verdicts(records) {
        terminal::print(&sentence);
    }
    terminal::print(&format!("Report: {}", folder.join("report.html").display()));
    if incomplete {
        let folder = folder.display();
        let why = "the run ended before everything was measured; compare again with another --out";
        missed.insert(0, format!("--report {folder}: {why}"));
        return Err(Failure::Failed(missed.join("\n")));
    }
    if !missed.is_empty() {
        return Err(Failure::Missed(missed.join("\n")));
    }
    let came_to_nothing = |record: &&Record| matches!(record, Record::FailedRun { .. });
    match records.iter().filter(came_to_nothing).count() {
        0 => Ok(()),
        1 => Err(Failure::Failed(
            "compare: one run failed; the report gives its name and the reason".into(),
        )),
        count => Err(Failure::Failed(format!(
            "compare: {count} runs failed; the report gives their names and the reasons"
        ))),
    }
}
