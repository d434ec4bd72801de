//! Prints the state of a running foxy for people, at most 80 columns wide.

use crate::commands::figures::{bytes, count, end_of, number, percent, rate, time, uptime};
use foxy_report::Table;
use serde_json::Value;

const FOLDER_WIDTH: usize = 24;

pub fn of(status: &Value) -> String {
    let mut parts = vec![head(status), requests(status), memory(status)];
    parts.extend(stores(&status["stores"]));
    parts.extend(errors(&status["errors"]));
    parts.join("\n").trim_end().to_owned()
}

fn head(status: &Value) -> String {
    let troubles: Vec<&str> =
        status["troubles"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let health = match troubles.len() {
        0 => "healthy".to_owned(),
        1 => "1 trouble".to_owned(),
        count => format!("{count} troubles"),
    };
    let version = status["version"].as_str().unwrap_or("of an unknown version");
    let uptime = uptime(number(&status["uptime_seconds"]));
    let mut text = format!("foxy {version}, running for {uptime}: {health}\n");
    troubles.iter().for_each(|trouble| text.push_str(&format!("  {trouble}\n")));
    text
}

fn requests(status: &Value) -> String {
    let mut table = Table::new(&["", "now", "since start"]);
    let requests = &status["requests"];
    let rate = format!("{}/s", rate(&requests["per_second"]));
    table.row(&["requests".into(), rate, count(&requests["total"])]);
    for (name, key) in [("hit ratio", "hit_ratio"), ("origin traffic saved", "saved_ratio")] {
        table.row(&[name.into(), percent(&status[key]["now"]), percent(&status[key]["total"])]);
    }
    let sent = &status["sent_bytes"];
    let now = format!("{}/s", bytes(&sent["per_second"]));
    table.row(&["sent to clients".into(), now, bytes(&sent["total"])]);
    let mut outcomes = Table::new(&["outcome", "now", "since start", "median", "p99"]);
    for outcome in status["outcomes"].as_array().into_iter().flatten() {
        outcomes.row(&[
            outcome["outcome"].as_str().unwrap_or_default().into(),
            format!("{}/s", self::rate(&outcome["per_second"])),
            count(&outcome["total"]),
            time(&outcome["median_seconds"]),
            time(&outcome["p99_seconds"]),
        ]);
    }
    format!("{}\n{}", table.render(), outcomes.render())
}

fn memory(status: &Value) -> String {
    let memory = &status["memory"];
    format!(
        "memory: {} for {} cached responses and parts, {} for indexes, {} in total\n\
         {:.2} CPUs in use, {} open client connections\n",
        bytes(&memory["responses_bytes"]),
        count(&memory["entries"]),
        bytes(&memory["index_bytes"]),
        bytes(&memory["process_bytes"]),
        number(&status["processors"]),
        count(&status["connections"]),
    )
}

fn stores(stores: &Value) -> Option<String> {
    let stores = stores.as_array().filter(|stores| !stores.is_empty())?;
    let mut table = Table::new(&["store", "used", "capacity", "read", "written", "disk errors"]);
    for store in stores {
        let is_out = store["out_of_use"].as_bool().unwrap_or_default();
        let errors = count(&store["disk_errors"]);
        table.row(&[
            end_of(store["folder"].as_str().unwrap_or_default(), FOLDER_WIDTH),
            bytes(&store["used_bytes"]),
            bytes(&store["capacity_bytes"]),
            format!("{}/s", bytes(&store["read_bytes_per_second"])),
            format!("{}/s", bytes(&store["written_bytes_per_second"])),
            if is_out { "out of use".into() } else { errors },
        ]);
    }
    Some(table.render())
}

fn errors(errors: &Value) -> Option<String> {
    const SHOWN: usize = 6;
    let errors = errors.as_array().filter(|errors| !errors.is_empty())?;
    let mut table = Table::new(&["foxy's own errors", "now", "since start"]);
    for error in errors.iter().take(SHOWN) {
        let reason = error["reason"].as_str().unwrap_or_default().to_owned();
        table.row(&[reason, format!("{}/s", rate(&error["per_second"])), count(&error["total"])]);
    }
    Some(table.render())
}
