//! Shows transactions, groups and fields as text or JSON.

use crate::commands::figures::share;
use foxy_base::{ByteSize, ascii_json, printable};
use foxy_log::field::{self, FieldKind, Get};
use foxy_log::group::Totals;
use foxy_log::lines::time;
use foxy_log::transaction::{Text, Transaction};
use foxy_report::Table;
use serde_json::{Map, Value, json};

/// Returns a line for a transaction.
pub fn one(transaction: &Transaction<'_>, as_json: bool) -> String {
    if as_json {
        ascii_json(&transaction_json(transaction).to_string())
    } else {
        printable(&line(transaction))
    }
}

fn line(transaction: &Transaction<'_>) -> String {
    let text = |name| transaction.text(name);
    let outcome = match text(Text::Outcome) {
        "" => "-",
        outcome => outcome,
    };
    let mut line = format!(
        "{} {:03} {outcome:<14} {:>8} {:>9} {} {} {}",
        time::shown(transaction.end),
        transaction.status,
        transaction.elapsed.map_or_else(|| "-".to_owned(), duration),
        ByteSize(transaction.bytes).to_string(),
        text(Text::Client),
        text(Text::Method),
        text(Text::Url),
    );
    let mut more = Vec::new();
    let mut add = |name: &str, value: &str| {
        if !value.is_empty() {
            more.push(if name.is_empty() { value.to_owned() } else { format!("{name} {value}") });
        }
    };
    add("", text(Text::Reason));
    add("cut", text(Text::Cut));
    let status =
        transaction.origin_status.filter(|status| *status != u64::from(transaction.status));
    add("origin status", &status.map_or_else(String::new, |status| status.to_string()));
    add("origin", &transaction.origin_ttfb.map_or_else(String::new, duration));
    let connect = transaction.origin_connect.filter(|micros| *micros > 0);
    add("connect", &connect.map_or_else(String::new, duration));
    add("server", text(Text::Server));
    add("parent", text(Text::Parent));
    add("rules", text(Text::Rules));
    add("user", text(Text::User));
    add("id", text(Text::Id));
    if transaction.weight > 1 {
        add("", &format!("one of {}", transaction.weight));
    }
    if !more.is_empty() {
        line.push_str(&format!(" ({})", more.join("; ")));
    }
    line
}

/// Returns the known fields of a transaction as a JSON object. Durations are in microseconds.
pub fn transaction_json(transaction: &Transaction<'_>) -> Value {
    let mut object = Map::new();
    for field in field::all() {
        let value = match (field.get, field.kind) {
            (Get::Text(get), _) => {
                Some(get(transaction)).filter(|text| !text.is_empty()).map(Value::from)
            }
            (Get::Number(get), FieldKind::Time) => {
                get(transaction).map(time::shown).map(Value::from)
            }
            (Get::Number(get), _) => get(transaction).map(Value::from),
        };
        let name = match field.kind {
            FieldKind::Duration => format!("{}_us", field.name),
            _ => field.name.to_owned(),
        };
        object.extend(value.map(|value| (name, value)));
    }
    object.into()
}

/// Returns a duration of `micros` in its usual unit, with three digits.
pub fn duration(micros: u64) -> String {
    let digits = |value: f64| match value {
        10.0.. if value < 100.0 => format!("{value:.1}"),
        ..10.0 => format!("{value:.2}"),
        _ => format!("{value:.0}"),
    };
    match micros {
        // Squid's format has whole milliseconds.
        0 => "<1ms".to_owned(),
        1..1_000 => format!("{micros}µs"),
        1_000..1_000_000 => format!("{}ms", digits(micros as f64 / 1e3)),
        _ => format!("{}s", digits(micros as f64 / 1e6)),
    }
}

/// Returns a table of groups.
pub fn group_table(field: &str, groups: &[(&str, &Totals)]) -> String {
    let heads = [field, "requests", "hits", "errors", "bytes", "median", "p99", "origin p99"];
    let quantile = |micros: Option<u64>| micros.map_or_else(|| "–".to_owned(), duration);
    let mut rows = vec![heads.map(str::to_owned)];
    for (value, totals) in groups {
        rows.push([
            if value.is_empty() { "–".to_owned() } else { (*value).to_owned() },
            totals.requests.to_string(),
            share(totals.hit_ratio()),
            totals.errors.to_string(),
            ByteSize(totals.bytes).to_string(),
            quantile(totals.elapsed.quantile(0.5)),
            quantile(totals.elapsed.quantile(0.99)),
            quantile(totals.ttfb.quantile(0.99)),
        ]);
    }
    // Headings and dashes stand above and below the ends of the numbers.
    for column in 1..heads.len() {
        let width = rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        rows.iter_mut().for_each(|row| row[column] = format!("{:>width$}", row[column]));
    }
    let mut table = Table::new(&rows[0].each_ref().map(String::as_str));
    rows[1..].iter().for_each(|row| table.row(row));
    table.render()
}

/// Returns a group as a JSON object. The counts keep their names if the field has the same name.
pub fn group_json(field: &str, (value, totals): (&str, &Totals)) -> String {
    let mut object = totals_json(totals);
    if object.get(field).is_none() {
        object[field] = value.into();
    }
    ascii_json(&object.to_string())
}

/// Returns the counts of a part of a log as a JSON object.
pub fn totals_json(totals: &Totals) -> Value {
    json!({
        "entries": totals.entries,
        "requests": totals.requests,
        "hit_ratio": totals.hit_ratio(),
        "byte_hit_ratio": totals.byte_ratio(),
        "errors": totals.errors,
        "bytes": totals.bytes,
        "median_us": totals.elapsed.quantile(0.5),
        "p99_us": totals.elapsed.quantile(0.99),
        "origin_p99_us": totals.ttfb.quantile(0.99),
    })
}

/// Returns a table of all fields.
pub fn fields() -> String {
    let mut table = Table::new(&["field", "type", "example", "meaning"]);
    for field in field::all() {
        let (kind, example) = field.kind.description();
        table.row(&[field.name, kind, example, field.help].map(str::to_owned));
    }
    table.render()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_tells_why_and_is_safe_on_a_terminal() {
        let line = b"1286536308.779    180 192.0.2.1 TCP_MISS/200 411 GET http://a.test/x alice \
            HIER_DIRECT/10.0.0.1 text/html";
        let mut transaction = foxy_log::lines::parse(line).expect("a line");
        transaction.texts[Text::Url as usize] = "http://a.test/\u{1b}[2J\u{202e}".into();
        transaction.texts[Text::Reason as usize] = "uri-miss".into();
        (transaction.origin_ttfb, transaction.weight) = (Some(1_250_000), 64);
        assert_eq!(
            one(&transaction, false),
            "2010-10-08T11:11:48.779Z 200 miss              180ms     411 B 192.0.2.1 GET \
             http://a.test/\u{fffd}[2J\u{fffd} (uri-miss; origin 1.25s; server 10.0.0.1; user \
             alice; one of 64)"
        );
        let object: Value = serde_json::from_str(&one(&transaction, true)).expect("JSON");
        assert_eq!(object["origin.ttfb_us"], 1_250_000);
        assert_eq!(object["host"], "a.test");
        assert!(one(&transaction, true).is_ascii());
        assert_eq!(object.get("rules"), None);
    }

    #[test]
    fn the_columns_of_a_table_end_at_the_same_place() {
        let totals = Totals { requests: 1, entries: 1, bytes: 411, ..Totals::default() };
        let table = group_table("host", &[("a.test", &totals), ("b.example", &totals)]);
        let ends: Vec<_> = table.lines().map(|line| line.chars().count()).collect();
        assert_eq!(ends[..], [ends[0]; 3], "{table}");
        assert!(table.contains("\na.test            1     –"), "{table}");
    }

    #[test]
    fn durations_have_three_digits() {
        let shown = [0, 35, 1_234, 56_789, 999_000, 1_250_000, 61_000_000].map(duration);
        assert_eq!(shown, ["<1ms", "35µs", "1.23ms", "56.8ms", "999ms", "1.25s", "61.0s"]);
    }
}
