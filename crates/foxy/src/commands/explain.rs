//! `foxy explain [METHOD] URL`: shows the operator's rules for a request, the stored response, and
//! how a running foxy would answer now, with its reasons.

use super::admin_client::{self, AdminClient};
use crate::failure::Failure;
use crate::serve::admin::requests::{encode, header_field};
use crate::terminal;
use clap::{Arg, ArgAction, ArgMatches, Command};
use foxy_cli::json_argument;
use serde_json::Value;
use std::fmt::Write;

pub fn command() -> Command {
    let words = Arg::new("request").value_name("[METHOD] URL").required(true).num_args(1..=2);
    let from = Arg::new("from").long("from").value_name("ADDRESS");
    let user = Arg::new("user").long("user").value_name("NAME");
    let field =
        Arg::new("field").long("field").short('H').value_name("LINE").action(ArgAction::Append);
    let command = Command::new("explain")
        .about(
            "Explain how a running foxy would answer a request: rules, stored response, decision",
        )
        .arg(words.help("Method (default: GET) and URL, as a client would send them"))
        .arg(from.help("Address of the client [default: 127.0.0.1]"))
        .arg(user.help("User who sends the request [default: none]"))
        .arg(field.help("Header line, such as \"Accept-Language: de\"; can be repeated"))
        .arg(json_argument());
    admin_client::add_to(command)
}

pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let words: Vec<&String> = matches.get_many("request").into_iter().flatten().collect();
    let (method, url) = match words.as_slice() {
        [method, url] => (method.as_str(), url.as_str()),
        words => ("GET", words[0].as_str()),
    };
    let mut target = format!("/explain?url={}&method={}", encode(url), encode(method));
    for name in ["from", "user"] {
        if let Some(value) = matches.get_one::<String>(name) {
            target.push_str(&format!("&{name}={}", encode(value)));
        }
    }
    for line in matches.get_many::<String>("field").into_iter().flatten() {
        header_field(line).map_err(|text| Failure::Unusable(format!("--field: {text}")))?;
        target.push_str("&field=");
        target.push_str(&encode(line));
    }
    let answer = AdminClient::new(matches)?.ask("GET", &target, "")?;
    if matches.get_flag("json") {
        terminal::print(answer.trim_end());
        return Ok(());
    }
    let explanation = serde_json::from_str(&answer).map_err(|error| {
        Failure::Failed(format!("the answer of the admin server is not JSON: {error}"))
    })?;
    terminal::print(text(&explanation).trim_end());
    Ok(())
}

fn text(explanation: &Value) -> String {
    let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
    let mut out = format!("{}\n\n", plain(&explanation["url"]));
    let stored = &explanation["stored"];
    if stored.is_object() {
        let facts = ["where", "length", "age", "lifetime"].map(|name| plain(&stored[name]));
        let [place, length, age, lifetime] = facts;
        let line = format!(
            "stored ({place}): {length} bytes, {age} s old, fresh until it is {lifetime} s old"
        );
        writeln!(out, "{line}").expect("a String takes all");
        for line in stored["head"].as_array().into_iter().flatten() {
            writeln!(out, "  {}", plain(line)).expect("a String takes all");
        }
        out.push('\n');
    }
    for step in explanation["steps"].as_array().into_iter().flatten() {
        let [section, rule, says] = ["section", "rule", "says"].map(|name| plain(&step[name]));
        writeln!(out, "{section:<20} {rule:<24} {says}").expect("a String takes all");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_explanation_lists_the_stored_head_and_the_steps() {
        let explanation = json!({
            "url": "http://a.test/",
            "stored": {"where": "memory", "length": 9, "age": 5, "lifetime": 60, "head": ["HTTP/1.1 200 OK"]},
            "steps": [{"rule": "fresh", "section": "RFC 9111 §4.2", "says": "fresh for 55 s"}],
        });
        let expected = "http://a.test/\n\nstored (memory): 9 bytes, 5 s old, fresh until it is 60 \
                        s old\n  HTTP/1.1 200 OK\n\nRFC 9111 §4.2        fresh                    \
                        fresh for 55 s\n";
        assert_eq!(text(&explanation), expected);
        assert!(!text(&json!({"url": "u", "stored": null, "steps": []})).contains("stored"));
    }
}
