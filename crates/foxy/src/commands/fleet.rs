//! `foxy fleet`: shows the nodes of the fleet, as a running foxy sees them, and lets a node leave.

use super::admin_client::{self, AdminClient};
use crate::failure::Failure;
use crate::terminal;
use clap::{Arg, ArgAction, ArgMatches, Command};
use foxy_cli::json_argument;
use serde_json::{Value, json};
use std::fmt::Write;

pub fn command() -> Command {
    let status = Command::new("status")
        .about("Show the nodes of the fleet, their shares and loads, and the requests between them")
        .arg(json_argument());
    let stay = Arg::new("cancel").long("cancel").action(ArgAction::SetTrue);
    let drain = Command::new("drain")
        .about("Let the running foxy leave its fleet: it takes no keys, until it stops")
        .arg(stay.help("Let the node take its cache keys again"))
        .arg(json_argument());
    Command::new("fleet")
        .about("Show the nodes that share one cache, or let a node leave")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(admin_client::add_to(status))
        .subcommand(admin_client::add_to(drain))
}

pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    match matches.subcommand() {
        Some(("status", matches)) => status(matches),
        Some(("drain", matches)) => drain(matches),
        _ => Ok(()),
    }
}

fn drain(matches: &ArgMatches) -> Result<(), Failure> {
    let stays = matches.get_flag("cancel");
    let path = if stays { "/fleet/stay" } else { "/fleet/drain" };
    AdminClient::new(matches)?.ask("POST", path, "")?;
    if matches.get_flag("json") {
        terminal::print(&json!({ "is_leaving": !stays }).to_string());
        return Ok(());
    }
    terminal::print(if stays {
        "the node takes its keys again"
    } else {
        "the node takes no more keys; stop it when `foxy fleet status` shows no load"
    });
    Ok(())
}

fn status(matches: &ArgMatches) -> Result<(), Failure> {
    let answer = AdminClient::new(matches)?.ask("GET", "/data/fleet", "")?;
    let status: Value = serde_json::from_str(&answer).map_err(|error| {
        Failure::Failed(format!(
            "the running foxy sent no readable state of the fleet: {error}; use the foxy command \
             of its version"
        ))
    })?;
    if matches.get_flag("json") {
        terminal::print(&status.to_string());
        return Ok(());
    }
    let text = text(&status);
    let absent = "the running foxy is not a node of a fleet; set `fleet.node` to join a fleet";
    terminal::print(text.as_deref().unwrap_or(absent));
    Ok(())
}

/// Returns the state of the fleet as text for a terminal, or `None` if the running foxy has no
/// fleet.
fn text(status: &Value) -> Option<String> {
    let nodes = status["nodes"].as_array()?;
    let mut text = String::from(
        "node             address                  state   keys  load    p99   lease\n",
    );
    for node in nodes {
        let word = |key: &str| node[key].as_str().unwrap_or_default();
        let state = match (node["is_own"].as_bool(), node["is_lost"].as_bool()) {
            (_, Some(true)) => "lost",
            _ if node["is_leaving"] == true => "draining",
            _ if node["taken_part"].as_f64().is_some_and(|part| part < 1.0) => "joining",
            (Some(true), _) => "own",
            _ if node["differs"] == true => "differs",
            _ => "works",
        };
        let share = node["share"].as_f64().unwrap_or_default() * 100.0;
        let p99 = node["p99_seconds"].as_f64();
        let p99 = p99.map_or_else(|| "-".to_owned(), |seconds| format!("{:.1} ms", seconds * 1e3));
        let load = node["load"].as_u64().unwrap_or_default();
        let (name, address) = (word("name"), word("address"));
        let lease = if node["is_own"] == true {
            &status["purges"]["lease_seconds"]
        } else {
            &status["purges"]["leases"][name]
        };
        let lease = lease.as_f64().map_or_else(|| "-".to_owned(), |left| format!("{left:.1} s"));
        writeln!(
            text,
            "{name:<16} {address:<24} {state:<7} {share:3.0} % {load:>5} {p99:>6} {lease:>7}"
        )
        .expect("a String takes all");
    }
    text.push_str(&summary(status));
    let counts = status["counters"].as_object()?;
    for (name, value) in counts {
        let label = label(name);
        write!(text, "\n{label:<31} {value}").expect("a String takes all");
    }
    Some(text)
}

/// Returns the words that describe a counter.
fn label(counter: &str) -> String {
    let label = match counter {
        "fleet_requests" => "requests to other nodes",
        "fleet_hits" => "hits at other nodes",
        "fleet_copies" => "copies of hot responses",
        "fleet_hedges" => "questions to a second node",
        "fleet_busy" => "refusals by busy nodes",
        "fleet_fallbacks" => "own fetches for lack of answers",
        "fleet_former_asked" => "questions to former owners",
        "fleet_former_hits" => "responses of former owners",
        "fleet_served" => "requests of other nodes",
        "fleet_nodes_lost" => "losses of nodes",
        "fleet_received_bytes" => "bytes from other nodes",
        other => return other.trim_start_matches("fleet_").replace('_', " "),
    };
    label.to_owned()
}

/// Returns lines with the source of the members, the hit ratios of this node and of the owners, and
/// the counts of purges.
fn summary(status: &Value) -> String {
    let percent = |key: &str| {
        let ratio = status[key].as_f64();
        ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{:.0} %", ratio * 100.0))
    };
    let (here, owners) = (percent("hit_ratio_here"), percent("hit_ratio_at_owners"));
    let source = &status["members_from"];
    let source = match (source["dns"].as_str(), source["failure"].as_str()) {
        (Some(dns), None) => format!("DNS, {dns}"),
        (Some(dns), Some(why)) => format!("DNS, {dns}; the last look-up failed: {why}"),
        (None, _) => "fleet.members".to_owned(),
    };
    let source = format!("\nmembers from                    {source}");
    let hits = format!("{source}\nhits                            {here} here, {owners} at owners");
    let purges = &status["purges"];
    let (Some(count), Some(failed)) = (purges["acknowledged"].as_u64(), purges["failed"].as_u64())
    else {
        return hits;
    };
    let mean = purges["mean_seconds"].as_f64();
    let mean = mean.map_or_else(String::new, |mean| format!(" in {:.1} ms on average", mean * 1e3));
    let lag = purges["lag"].as_u64();
    let lag = lag.map_or_else(|| "engine away".to_owned(), |lag| format!("lag {lag}"));
    format!(
        "{hits}\npurges                          {count} acknowledged{mean}, {failed} failed, {lag}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nodes_are_shown_with_their_states() {
        let node = |name: &str, is_own: bool, is_lost: bool| {
            json!({ "name": name, "address": "10.0.0.1:3130", "is_own": is_own, "is_lost": is_lost,
                    "differs": true, "share": 0.5, "load": 7, "p99_seconds": 0.0012 })
        };
        let status = json!({
            "nodes": [node("a", true, false), node("b", false, true), node("c", false, false)],
            "counters": { "fleet_requests": 12 },
            "members_from": { "dns": "a.test:1", "failure": "no answer" },
            "hit_ratio_here": 0.5,
            "hit_ratio_at_owners": null,
            "purges": { "acknowledged": 4, "failed": 1, "mean_seconds": 0.008, "lag": 2,
                        "lease_seconds": 1.25, "leases": { "b": 0.5 } },
        });
        let joining = json!({ "is_own": true, "taken_part": 0.3 });
        let leaving = json!({ "is_own": true, "is_leaving": true, "taken_part": 0.0 });
        let both = text(&json!({ "nodes": [joining, leaving], "counters": {} })).expect("a fleet");
        assert!(both.contains(" joining ") && both.contains(" draining "), "{both}");
        let text = text(&status).expect("a fleet");
        assert!(text.contains("own      50 %     7 1.2 ms"), "{text}");
        assert!(text.contains("lost     50 %"), "{text}");
        assert!(text.contains("differs  50 %"), "{text}");
        assert!(text.contains(" 1.2 s\n") && text.contains(" 0.5 s\n"), "{text}");
        assert!(text.contains("50 % here, - at owners"), "{text}");
        assert!(text.contains("DNS, a.test:1; the last look-up failed: no answer"), "{text}");
        let purges = "4 acknowledged in 8.0 ms on average, 1 failed, lag 2";
        assert!(text.contains(purges), "{text}");
        assert!(text.ends_with("\nrequests to other nodes         12"), "{text}");
        assert_eq!(super::text(&json!({ "nodes": null, "counters": {} })), None);
    }
}
