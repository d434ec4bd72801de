//! CPU time of other processes, as the system counts it: how much a proxy spent on a run.

use crate::failure::Failure;
use crate::serve::process::cpu_time;
use std::time::Duration;

/// A process's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessId(pub u32);

/// User and system time of all of them so far; none when there are none.
pub fn time(processes: &[ProcessId]) -> Result<Option<Duration>, Failure> {
    let mut sum = Duration::ZERO;
    for ProcessId(id) in processes {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok();
        sum += stat.and_then(|stat| cpu_time(&stat)).ok_or_else(|| {
            Failure::Unusable(format!("there is no process {id} (--pid); give one that runs"))
        })?;
    }
    Ok(if processes.is_empty() { None } else { Some(sum) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_of_processes_that_run() {
        assert!(time(&[]).is_ok_and(|time| time.is_none()));
        assert!(time(&[ProcessId(std::process::id())]).is_ok_and(|time| time.is_some()));
        assert!(time(&[ProcessId(u32::MAX)]).is_err());
    }
}
