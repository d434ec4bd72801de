//! `foxy log`: answers questions about the transactions of a ring (log file of fixed size) or of
//! access logs.

mod follow;
mod sources;
mod stats;
mod text;

use crate::failure::Failure;
use crate::settings;
use crate::terminal;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use foxy_base::clock;
use foxy_cli::machine::Machine;
use foxy_cli::suggestion::nearest;
use foxy_log::field::{self, Field};
use foxy_log::group::{Groups, Totals};
use foxy_log::query::{Query, QueryFault};
use foxy_log::transaction::Transaction;
use sources::LogSource;
use std::path::PathBuf;

/// Number of groups that `--group` shows unless `-n` gives a number.
const SHOWN_GROUPS: usize = 30;
/// Number of lines that the command writes at once.
const LINES_AT_ONCE: usize = 256;

pub fn command() -> Command {
    let switch = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
    };
    let group = Arg::new("group").long("group").value_name("FIELD");
    let count = Arg::new("count").short('n').long("count").value_name("N");
    let command = Command::new("log")
        .about("Answer questions about requests, from the log of transactions or an access log")
        .long_about(
            "Answer questions about requests. Without FILE, the command reads the file of the \
             setting `transaction-log`. It also reads access logs in Squid's, the Combined and \
             foxy's JSON format, also compressed with gzip.\n\n\
             A query compares fields with values: `status >= 500 and origin.ttfb > 1s and host = \
             \"a.example\"`. Comparisons: = != < <= > >= for numbers, = != ~ !~ for texts, where ~ \
             is a regular expression. `and`, `or`, `not` and parentheses connect them. Times are \
             UTC.",
        )
        .args_conflicts_with_subcommands(true)
        .args(sources_and_query())
        .arg(switch("follow", "Also print transactions as they end").short('f'))
        .arg(switch("json", "Print one JSON object for each transaction or group"))
        .arg(group.help("Count requests by the values of a field").value_parser(field_named))
        .arg(
            count
                .help("Print only the last N transactions or the first N groups")
                .value_parser(value_parser!(usize)),
        )
        .arg(switch("fields", "List the fields"));
    let stats = Command::new("stats")
        .about("Show hit ratio, hosts, latencies, errors and the slowest requests on one screen")
        .args(sources_and_query())
        .arg(switch("json", "Print one JSON object instead of text"));
    command.subcommand(stats)
}

fn sources_and_query() -> [Arg; 4] {
    [
        Arg::new("file")
            .value_name("FILE")
            .num_args(0..)
            .value_parser(value_parser!(PathBuf))
            .help("Logs to read; - is standard input [default: the setting transaction-log]"),
        Arg::new("query")
            .short('q')
            .long("query")
            .value_name("QUERY")
            .help("Condition on the transactions, such as 'status >= 500 and elapsed > 1s'"),
        Arg::new("since")
            .long("since")
            .value_name("TIME")
            .help("Beginning: a duration such as 15m, or a time such as 2026-11-26T23:00"),
        Arg::new("config")
            .long("config")
            .value_name("FILE")
            .value_parser(value_parser!(PathBuf))
            .help("Configuration file that names the log [default: as for `foxy serve`]"),
    ]
}

fn field_named(name: &str) -> Result<&'static Field, String> {
    field::named(name).ok_or_else(|| format!("no field has this name{}", suggestion(name)))
}

fn suggestion(name: &str) -> String {
    let near = nearest(name, field::all().map(|field| field.name));
    let near = near.map_or_else(String::new, |near| format!("; did you mean {near}?"));
    format!("{near} `foxy log --fields` lists the fields")
}

pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    if let Some(("stats", matches)) = matches.subcommand() {
        let as_json = matches.get_flag("json");
        return stats::run(&opened(matches)?, &query(matches)?, as_json);
    }
    if matches.get_flag("fields") {
        terminal::print(text::fields().trim_end());
        return Ok(());
    }
    let (sources, query) = (opened(matches)?, query(matches)?);
    let as_json = matches.get_flag("json");
    let count = matches.get_one::<usize>("count").copied();
    if matches.get_flag("follow") {
        let [source] = &sources[..] else {
            return Err(Failure::Unusable("-f follows one log; name one FILE".into()));
        };
        if let Some(count) = count {
            transactions(&sources, &query, as_json, count)?;
        }
        return follow::follow(source, &query, |transaction| {
            terminal::print(&text::one(transaction, as_json));
        });
    }
    match matches.get_one::<&'static Field>("group") {
        Some(field) => groups(&sources, &query, field, (as_json, count)),
        None => transactions(&sources, &query, as_json, count.unwrap_or(usize::MAX)),
    }
}

fn opened(matches: &ArgMatches) -> Result<Vec<LogSource>, Failure> {
    let files = matches.get_many::<PathBuf>("file").unwrap_or_default();
    let sources = files.map(|path| LogSource::open(path)).collect::<Result<Vec<_>, _>>()?;
    if !sources.is_empty() {
        return Ok(sources);
    }
    let config = matches.get_one::<PathBuf>("config").map(PathBuf::as_path);
    let loaded = settings::read(config, None, &Machine::look())
        .map_err(|complaints| Failure::Unusable(complaints.to_string()))?;
    let ring = loaded.settings.operation.transaction_log.ok_or_else(|| {
        Failure::Unusable(
            "the configuration names no log of transactions; set transaction-log, or name a FILE"
                .into(),
        )
    })?;
    Ok(vec![LogSource::open(&ring)?])
}

fn query(matches: &ArgMatches) -> Result<Query, Failure> {
    let now = clock::wall().0;
    let text = matches.get_one::<String>("query").map_or("", String::as_str);
    let query = Query::read(text, now).map_err(|error| {
        let near = match &error.reason {
            QueryFault::UnknownField(name) => suggestion(name),
            _ => String::new(),
        };
        let mark = " ".repeat(error.column - 1);
        Failure::Unusable(format!(
            "the query is wrong at column {}: {}{near}\n  {text}\n  {mark}^",
            error.column, error.reason
        ))
    })?;
    let Some(since) = matches.get_one::<String>("since") else { return Ok(query) };
    let relative = Query::read(&format!("time >= \"-{since}\""), now);
    let since = relative.or_else(|_| Query::read(&format!("time >= \"{since}\""), now));
    let since = since.map_err(|error| Failure::Unusable(format!("--since: {}", error.reason)))?;
    Ok(query.and(since))
}

fn transactions(
    sources: &[LogSource],
    query: &Query,
    as_json: bool,
    most: usize,
) -> Result<(), Failure> {
    let take = |found: &mut Vec<Transaction<'static>>, transaction: &Transaction<'_>| {
        found.push(transaction.clone().into_owned());
        if most < usize::MAX / 2 && found.len() > 2 * most + 1000 {
            found.drain(..found.len() - most);
        }
    };
    let (found, counted) = sources::collect(sources, query, Vec::new, take)?;
    let mut found: Vec<_> = found.into_iter().flatten().collect();
    found.sort_by_key(|transaction| transaction.end);
    for some in found[found.len().saturating_sub(most)..].chunks(LINES_AT_ONCE) {
        let lines: Vec<String> = some.iter().map(|one| text::one(one, as_json)).collect();
        terminal::print(&lines.join("\n"));
    }
    counted.report_unread();
    Ok(())
}

fn groups(
    sources: &[LogSource],
    query: &Query,
    field: &'static Field,
    (as_json, count): (bool, Option<usize>),
) -> Result<(), Failure> {
    let (found, counted) = sources::collect(sources, query, || Groups::by(field), Groups::add)?;
    let mut groups = Groups::by(field);
    found.into_iter().for_each(|found| groups.merge(found));
    let sorted = groups.sorted();
    let most = count.unwrap_or(if as_json { usize::MAX } else { SHOWN_GROUPS });
    let shown = &sorted[..sorted.len().min(most)];
    if as_json {
        shown.iter().for_each(|group| terminal::print(&text::group_json(field.name, *group)));
    } else {
        let mut all = Totals::default();
        sorted.iter().for_each(|(_, totals)| all.merge(totals));
        terminal::print(text::group_table(field.name, shown).trim_end());
        let rest = sorted.len() - shown.len();
        if rest > 0 {
            terminal::print(&format!("{rest} more; -n N shows more"));
        }
        terminal::print(&counted.basis(&all));
    }
    counted.report_unread();
    Ok(())
}
