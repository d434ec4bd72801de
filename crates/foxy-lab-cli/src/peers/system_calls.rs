//! Counts the system calls of processes with `perf stat`, which slows the processes less than
//! tracing does.

use rustix::process::{Pid, Signal, kill_process};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

pub struct SystemCalls {
    counter: Child,
}

impl SystemCalls {
    pub fn begin(processes: &[u32]) -> Result<Self, String> {
        let list: Vec<String> = processes.iter().map(ToString::to_string).collect();
        let mut command = Command::new("perf");
        command.args(["stat", "-x,", "-e", "raw_syscalls:sys_enter", "-p", &list.join(",")]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let counter = command.spawn().map_err(|error| format!("this needs perf ({error})"))?;
        let mut counter = Self { counter };
        // Gives perf time to attach to the processes. If perf has no permission to do so, it ends
        // during this wait.
        std::thread::sleep(Duration::from_millis(300));
        match counter.counter.try_wait() {
            Ok(None) => Ok(counter),
            _ => Err("perf may not trace system calls here".into()),
        }
    }

    pub fn end(mut self) -> Result<u64, String> {
        if let Some(process) = i32::try_from(self.counter.id()).ok().and_then(Pid::from_raw) {
            let _gone_meanwhile = kill_process(process, Signal::INT);
        }
        let mut text = String::new();
        if let Some(mut said) = self.counter.stderr.take() {
            let _what_came = std::io::Read::read_to_string(&mut said, &mut text);
        }
        let _reaped = self.counter.wait();
        count_in(&text).ok_or_else(|| "perf counted nothing".to_owned())
    }
}

impl Drop for SystemCalls {
    fn drop(&mut self) {
        let _ended_already = self.counter.kill();
        let _reaped = self.counter.wait();
    }
}

/// Returns the number of system calls from the output of `perf stat -x,`. Its lines have the fields
/// value, unit and event, separated by commas.
fn count_in(text: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.contains("sys_enter"))?;
    line.split(',').next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_read_and_its_absence_noticed() {
        assert_eq!(count_in("1234,,raw_syscalls:sys_enter,55,100.00,,\n"), Some(1234));
        assert_eq!(count_in("<not counted>,,raw_syscalls:sys_enter,0,100.00,,\n"), None);
        assert_eq!(count_in("Error: no permission\n"), None);
    }
}
