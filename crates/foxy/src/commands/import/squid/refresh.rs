//! Converts `refresh_pattern` lines, which set heuristic lifetimes by URL.

use super::super::report::ImportReason;
use super::super::terms::{AccessTerm, effect};
use super::lines::SquidLine;
use super::{SquidImport, access, regex, unreadable, values};
use toml::{Table, Value};

/// Beginnings of expressions for URLs with schemes that foxy never fetches.
const FOREIGN: [&str; 4] = ["^ftp", "^gopher", "^cache_object", "^wais"];

/// Converts `refresh_pattern [-i] REGEX MIN PERCENT MAX [OPTION…]`. `MIN` and `MAX` are in minutes.
pub fn refresh_pattern(import: &mut SquidImport<'_>, line: &SquidLine) -> Result<(), ImportReason> {
    let (ignore_case, words) = match line.arguments() {
        [flag, words @ ..] if flag == "-i" => (true, words),
        words => (false, words),
    };
    let [expression, least, percent, most, options @ ..] = words else {
        return Err(unreadable(&line.original));
    };
    if FOREIGN.iter().any(|foreign| expression.starts_with(foreign)) {
        return Err(ImportReason::NotNeeded("foxy fetches http and https alone".into()));
    }
    let numbers = [least, percent, most].map(|text| text.trim_end_matches('%').parse::<u32>());
    let [Ok(least), Ok(percent), Ok(most)] = numbers else {
        return Err(unreadable(&line.original));
    };
    let mut term = AccessTerm::default();
    if expression != "." {
        let url = regex::url_regex(expression, ignore_case)
            .map_err(|flaw| ImportReason::Missing(flaw.to_string()))?;
        term.when.insert("url", vec![url]);
    }
    let minutes = |count: u32| Value::from(values::minutes(count.into()));
    let heuristic = Table::from_iter([
        ("at-least".to_owned(), minutes(least.min(most))),
        ("percent".to_owned(), Value::from(i64::from(percent))),
        ("at-most".to_owned(), minutes(most)),
    ]);
    let mut then = effect("heuristic", Value::Table(heuristic));
    let mut others: Vec<&str> = Vec::new();
    for option in options {
        match option.as_str() {
            "override-expire" if least > 0 => {
                then.insert("fresh-at-least".into(), minutes(least));
            }
            "override-expire" => {}
            other => others.push(other),
        }
    }
    let rule = term.rule(&access::rule_name(&line.original), then);
    import.draft.list("rule", rule, &line.original);
    if others.is_empty() {
        return Ok(());
    }
    let text = format!("foxy has no option {}, so it keeps fewer responses", others.join(", "));
    Err(ImportReason::Differs(text))
}
