//! Converts the lines with which HAProxy sends clients to another URL: `http-request redirect` and
//! `redirect`.

use super::super::terms::redirect;
use super::lines::HaproxyLine;
use super::routing::condition;
use toml::Table;

/// First words of the lines that send a client to another URL.
const REDIRECTS: [&[&str]; 2] = [&["http-request", "redirect"], &["redirect"]];

/// Returns whether a line sends clients to another URL.
pub fn is_redirect(line: &HaproxyLine) -> bool {
    REDIRECTS.iter().any(|words| line.starts(words))
}

/// Returns the effect of a rule that redirects as this line does. Returns `None` if the line sends
/// no redirect, or a redirect that foxy cannot send.
pub fn effect(line: &HaproxyLine) -> Option<Table> {
    let first = REDIRECTS.iter().find(|words| line.starts(words))?;
    let end = line.words.len() - condition(line).len();
    let [kind, target, options @ ..] = line.words.get(first.len()..end)? else { return None };
    let status = match options {
        [] => 302,
        [word, code] if word == "code" => code.parse().ok()?,
        _ => return None,
    };
    // `%` begins a value that HAProxy computes for each request.
    let target = (!target.contains('%')).then(|| target.replace('$', "$$"))?;
    let to = match kind.as_str() {
        "scheme" => format!("{target}://$host$request_uri"),
        "location" => target,
        "prefix" => format!("{}$request_uri", target.strip_suffix('/').unwrap_or(&target)),
        _ => return None,
    };
    redirect(status, None, &to)
}
