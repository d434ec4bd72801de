//! Reads the processes of the machine from `/proc/PID/stat`, and finds the descendants of a
//! process.

use std::path::Path;
use std::time::Duration;

/// The state of a process at the time when foxy read it from `/proc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// The process id.
    pub id: u32,
    /// Whether the process has ended but its parent has not waited for it (zombie).
    pub ended: bool,
    parent: u32,
    group: u32,
    /// User and system time of the process itself in clock ticks. The next field is the time of its
    /// ended children.
    own_ticks: u64,
    children_ticks: u64,
    /// Start time in clock ticks since boot. It distinguishes the process from a later process with
    /// the same id.
    started: u64,
    resident_pages: u64,
}

impl Process {
    /// Reads the entry of the process with the id `id` in `/proc`. Returns `None` if no such
    /// process exists.
    pub fn find(id: u32) -> Option<Self> {
        Self::read(&Path::new("/proc").join(id.to_string()))
    }

    /// Reads the entry of the calling process in `/proc`.
    pub fn own() -> Option<Self> {
        Self::read(Path::new("/proc/self"))
    }

    fn read(folder: &Path) -> Option<Self> {
        Self::parse(&std::fs::read_to_string(folder.join("stat")).ok()?)
    }

    /// Parses a line of proc_pid_stat(5). The second field of the line is a name in parentheses,
    /// which may contain spaces. The other fields are therefore counted from the closing
    /// parenthesis.
    fn parse(stat: &str) -> Option<Self> {
        let id = stat.split_once(' ')?.0.parse().ok()?;
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
        Some(Self {
            id,
            ended: fields.first() == Some(&"Z"),
            parent: u32::try_from(number(4)?).ok()?,
            group: u32::try_from(number(5)?).ok()?,
            own_ticks: number(14)?.checked_add(number(15)?)?,
            children_ticks: number(16)?.checked_add(number(17)?)?,
            started: number(22)?,
            resident_pages: number(24)?,
        })
    }

    /// Returns the user and system time of the process, without its children.
    pub fn processor_time(&self) -> Duration {
        ticks(self.own_ticks)
    }

    /// Returns the resident memory of the process in bytes.
    pub fn resident(&self) -> u64 {
        self.resident_pages.saturating_mul(rustix::param::page_size() as u64)
    }

    /// Returns whether the process is still running. A later process with the same id does not
    /// count.
    pub fn still_runs(&self) -> bool {
        Self::find(self.id).is_some_and(|now| !now.ended && now.started == self.started)
    }
}

/// Returns the process `id` and all its descendants. The process itself is first. The list is empty
/// if there is no such process.
pub fn family(id: u32) -> Vec<Process> {
    family_in(&all(), id)
}

/// Returns the processes in the process group `id` after its leader, the process `id`, has ended.
/// The list is empty if a process `id` exists. That process could be newer, and lead a new group.
pub fn left_of_group(id: u32) -> Vec<Process> {
    left_of_group_in(&all(), id)
}

fn left_of_group_in(all: &[Process], id: u32) -> Vec<Process> {
    if all.iter().any(|process| process.id == id) {
        return Vec::new();
    }
    all.iter().filter(|process| process.group == id).copied().collect()
}

fn all() -> Vec<Process> {
    let folders = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbered =
        folders.filter(|entry| entry.file_name().as_encoded_bytes().iter().all(u8::is_ascii_digit));
    numbered.filter_map(|entry| Process::read(&entry.path())).collect()
}

fn family_in(all: &[Process], id: u32) -> Vec<Process> {
    let mut found: Vec<Process> = all.iter().filter(|process| process.id == id).copied().collect();
    let mut next = 0;
    while let Some(&Process { id: parent, .. }) = found.get(next) {
        next += 1;
        let children = all.iter().filter(|process| process.parent == parent);
        // The kernel can reuse an id while this function reads the table, so parents can form a
        // loop. The function therefore skips a process that it already found.
        let new: Vec<Process> = children.filter(|child| !found.contains(child)).copied().collect();
        found.extend(new);
    }
    found
}

/// Returns the user and system time of all processes in `family`, including their ended children.
pub fn processor_time(family: &[Process]) -> Duration {
    ticks(
        family.iter().map(|process| process.own_ticks.saturating_add(process.children_ticks)).sum(),
    )
}

fn ticks(count: u64) -> Duration {
    Duration::from_secs(count)
        / u32::try_from(rustix::param::clock_ticks_per_second()).unwrap_or(100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_spaces_and_parentheses_does_not_shift_the_fields() {
        let stat = "42 (a ) b) S 7 42 42 0 -1 4194304 100 0 0 0 10 5 3 2 20 0 1 0 9 1000000 77 18446744073709551615";
        let expected = Process {
            id: 42,
            ended: false,
            parent: 7,
            group: 42,
            own_ticks: 15,
            children_ticks: 5,
            started: 9,
            resident_pages: 77,
        };
        assert_eq!(Process::parse(stat), Some(expected));
        let ended = stat.replace(") S", ") Z");
        assert_eq!(Process::parse(&ended), Some(Process { ended: true, ..expected }));
        for cut in ["", "42 (cut", &stat[..60]] {
            assert_eq!(Process::parse(cut), None, "{cut}");
        }
    }

    #[test]
    fn a_family_is_a_process_and_those_below_it() {
        let process = |id, parent| Process {
            id,
            ended: false,
            parent,
            group: id,
            own_ticks: 1,
            children_ticks: 2,
            started: 0,
            resident_pages: 0,
        };
        let all = [process(6, 5), process(1, 0), process(5, 1), process(9, 1), process(7, 6)];
        let ids = |of| family_in(&all, of).iter().map(|process| process.id).collect::<Vec<_>>();
        assert_eq!(ids(5), [5, 6, 7]);
        assert!(ids(8).is_empty());
        assert_eq!(family_in(&[process(1, 2), process(2, 1)], 1).len(), 2);
        assert_eq!(processor_time(&family_in(&all, 5)), ticks(9));
    }

    #[test]
    fn this_process_is_its_own_family_and_runs() {
        let own = Process::own().expect("it runs");
        assert_eq!(family(own.id).first().map(|first| first.id), Some(std::process::id()));
        assert!(own.still_runs() && own.resident() > 0);
        assert!(!Process { started: own.started + 1, ..own }.still_runs());
        assert_eq!(family(u32::MAX), []);
    }
}
