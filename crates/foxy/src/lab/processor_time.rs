//! CPU time of a process and all its descendants, from `/proc/PID/stat`. Measures any proxy, not only foxy.

use std::collections::HashMap;
use std::time::Duration;

/// User and system time in clock ticks, and the parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Process {
    parent: u32,
    ticks: u64,
}

/// CPU time used so far by `process` and those below it, reaped children included. `None` when it does not run.
pub fn of(process: u32) -> Option<Duration> {
    let mut table = HashMap::new();
    for entry in std::fs::read_dir("/proc").ok()?.flatten() {
        let Some(id) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        let Ok(text) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
        if let Some(found) = parse(&text) {
            table.insert(id, found);
        }
    }
    table.get(&process)?;
    let ticks: u64 =
        table.iter().filter(|(id, _)| descends(&table, **id, process)).map(|(_, found)| found.ticks).sum();
    Some(Duration::from_secs(ticks) / u32::try_from(rustix::param::clock_ticks_per_second()).unwrap_or(100))
}

fn descends(table: &HashMap<u32, Process>, from: u32, ancestor: u32) -> bool {
    let mut at = from;
    for _ in 0..table.len() {
        if at == ancestor {
            return true;
        }
        match table.get(&at) {
            Some(process) if process.parent != 0 => at = process.parent,
            _ => return false,
        }
    }
    false
}

/// Reads the fields after the command's closing parenthesis (proc(5)): state, ppid, … utime, stime, cutime, cstime.
fn parse(stat: &str) -> Option<Process> {
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
    let ticks = (11..15).map(number).sum::<Option<u64>>()?;
    Some(Process { parent: u32::try_from(number(1)?).ok()?, ticks })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_spaces_and_parentheses_does_not_shift_the_fields() {
        let stat = "42 (a ) b) S 7 42 42 0 -1 4194304 100 0 0 0 10 5 3 2 20 0 1 0";
        assert_eq!(parse(stat), Some(Process { parent: 7, ticks: 20 }));
        assert_eq!(parse("42 (cut"), None);
    }

    #[test]
    fn only_descendants_count() {
        let process = |parent| Process { parent, ticks: 1 };
        let table = HashMap::from([(1, process(0)), (5, process(1)), (6, process(5)), (9, process(1))]);
        assert!(descends(&table, 6, 5) && descends(&table, 5, 5));
        assert!(!descends(&table, 9, 5) && !descends(&table, 1, 5));
    }

    #[test]
    fn this_process_has_used_some_time() {
        assert!(of(std::process::id()).is_some());
        assert_eq!(of(u32::MAX), None);
    }
}
