//! `foxy fleet status`: shows the nodes of the fleet, as a running foxy sees them.

use super::admin_client::{self, AdminClient};
use crate::failure::Failure;
use crate::terminal;
use clap::{Arg, ArgAction, ArgMatches, Command};
use serde_json::Value;
use std::fmt::Write;

pub fn command() -> Command {
    let json = Arg::new("json").long("json").action(ArgAction::SetTrue);
    let status = Command::new("status")
        .about("Show the nodes of the fleet, their shares and loads, and the requests between them")
        .arg(json.help("Print one JSON object instead of text"));
    Command::new("fleet")
        .about("Show the nodes that share one cache")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(admin_client::add_to(status))
}

pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let Some(("status", matches)) = matches.subcommand() else { return Ok(()) };
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
    let mut text =
        String::from("node             address                  state   keys  load    p99\n");
    for node in nodes {
        let word = |key: &str| node[key].as_str().unwrap_or_default();
        let state = match (node["is_own"].as_bool(), node["is_lost"].as_bool()) {
            (Some(true), _) => "own",
            (_, Some(true)) => "lost",
            _ if node["differs"] == true => "differs",
            _ => "works",
        };
        let share = node["share"].as_f64().unwrap_or_default() * 100.0;
        let p99 = node["p99_seconds"].as_f64();
        let p99 = p99.map_or_else(|| "-".to_owned(), |seconds| format!("{:.1} ms", seconds * 1e3));
        let load = node["load"].as_u64().unwrap_or_default();
        let (name, address) = (word("name"), word("address"));
        writeln!(text, "{name:<16} {address:<24} {state:<7} {share:3.0} % {load:>5} {p99:>6}")
            .expect("a String takes all");
    }
    let counts = status["counters"].as_object()?;
    for (name, value) in counts {
        write!(text, "\n{name:<24} {value}").expect("a String takes all");
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_nodes_are_shown_with_their_states() {
        let node = |name: &str, is_own: bool, is_lost: bool| {
            json!({ "name": name, "address": "10.0.0.1:3130", "is_own": is_own, "is_lost": is_lost,
                    "differs": true, "share": 0.5, "load": 7, "p99_seconds": 0.0012 })
        };
        let status = json!({
            "nodes": [node("a", true, false), node("b", false, true), node("c", false, false)],
            "counters": { "fleet_requests": 12 },
        });
        let text = text(&status).expect("a fleet");
        assert!(text.contains("own      50 %     7 1.2 ms"), "{text}");
        assert!(text.contains("lost     50 %"), "{text}");
        assert!(text.contains("differs  50 %"), "{text}");
        assert!(text.ends_with("fleet_requests           12"), "{text}");
        assert_eq!(super::text(&json!({ "nodes": null, "counters": {} })), None);
    }
}
