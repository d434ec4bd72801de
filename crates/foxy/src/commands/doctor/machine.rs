//! Examines kernel, limits, memory and clock.

use super::{Diagnosis, Grade};
use crate::serve::process::{DescriptorRoom, counted_clients, open_files_now};
use crate::settings::Settings;
use foxy_base::{ByteSize, CivilTime, WallTime};
use foxy_cli::machine::Machine;
use rustix::process::{Resource, getrlimit};
use rustix::system::uname;
use std::process::Command;

/// The first kernel that has all operations of io_uring that foxy uses.
const OLDEST_KERNEL: (u32, u32) = (5, 11);

pub fn kernel() -> Diagnosis {
    kernel_of(&uname().release().to_string_lossy())
}

fn kernel_of(release: &str) -> Diagnosis {
    let mut numbers = release.split(|letter: char| !letter.is_ascii_digit());
    let mut number = || numbers.next().and_then(|number| number.parse::<u32>().ok()).unwrap_or(0);
    let version = (number(), number());
    if version >= OLDEST_KERNEL {
        return Diagnosis::good("kernel", format!("Linux {release}"));
    }
    let says = format!("Linux {release} lacks parts of io_uring, so foxy uses threads for disks");
    let command = "apt-get install linux-image-amd64  # 5.11 or later";
    Diagnosis::bad("kernel", Grade::Warning, says, command)
}

pub fn descriptors(settings: &Settings) -> Diagnosis {
    let limit = getrlimit(Resource::Nofile).maximum;
    let room = DescriptorRoom::of(limit, open_files_now(), settings);
    descriptors_of(limit, room.clients, settings.limits.connections)
}

/// Judges the hard limit of open files. The limit suffices for `clients` clients, and the settings
/// want `wanted` clients.
fn descriptors_of(limit: Option<u64>, clients: usize, wanted: usize) -> Diagnosis {
    let shown = limit.map_or_else(|| "unlimited".to_owned(), |limit| limit.to_string());
    let says = format!("the hard limit of open files is {shown}");
    if clients >= wanted {
        return Diagnosis::good("descriptors", says);
    }
    let says = format!(
        "{says}, enough for {} at a time, not {wanted} (limits.connections)",
        counted_clients(clients)
    );
    let command = format!("systemctl edit foxy  # [Service] LimitNOFILE={}", 3 * wanted);
    Diagnosis::bad("descriptors", Grade::Warning, says, command)
}

pub fn memory(settings: &Settings, machine: &Machine) -> Diagnosis {
    memory_of(settings.memory.size, machine.memory)
}

fn memory_of(wanted: ByteSize, available: Option<ByteSize>) -> Diagnosis {
    let Some(available) = available else {
        return Diagnosis::good(
            "memory",
            format!("{wanted} for responses; the memory of the machine is unknown"),
        );
    };
    // The process may need 1.75 times the setting `memory`. docs/operation.md also names further
    // memory, which is left out here.
    let needed = ByteSize(wanted.0.saturating_mul(7) / 4);
    let says =
        format!("responses get {wanted}, foxy may need {needed}, the machine has {available}");
    if needed.0 <= available.0 {
        return Diagnosis::good("memory", says);
    }
    let quarter = ByteSize(available.0 / 4);
    Diagnosis::bad("memory", Grade::Warning, says, format!("foxy serve --memory {}", quarter.0))
}

/// foxy did not exist before this year, so a clock with an earlier time is wrong.
const FIRST_YEAR: u64 = 2025;

pub fn clock(now: WallTime) -> Diagnosis {
    const COMMAND: &str = "timedatectl set-ntp true";
    let time = CivilTime::of(now);
    if time.year < FIRST_YEAR {
        let says = format!("the clock says {time}; foxy computes ages of responses from it");
        return Diagnosis::bad("clock", Grade::Fault, says, COMMAND);
    }
    let show = ["show", "--property", "NTPSynchronized", "--value"];
    let output = Command::new("timedatectl").args(show).output();
    if output.is_ok_and(|output| output.stdout == b"no\n") {
        let says = format!("it is {time}, and no time server corrects the clock");
        return Diagnosis::bad("clock", Grade::Warning, says, COMMAND);
    }
    Diagnosis::good("clock", format!("it is {time}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_kernel_a_low_limit_little_memory_and_a_wrong_clock_are_found() {
        let grade = |diagnosis: Diagnosis| diagnosis.grade;
        for (release, expected) in [
            ("6.1.0-28-amd64", Grade::Good),
            ("5.11.0", Grade::Good),
            ("5.4.0-150-generic", Grade::Warning),
            ("", Grade::Warning),
        ] {
            assert_eq!(grade(kernel_of(release)), expected, "{release}");
        }
        assert_eq!(grade(descriptors_of(Some(1024), 400, 1000)), Grade::Warning);
        assert_eq!(grade(descriptors_of(Some(2500), 1000, 1000)), Grade::Good);
        let memory = |wanted: u64, available: u64| {
            grade(memory_of(ByteSize(wanted << 20), Some(ByteSize(available << 20))))
        };
        assert_eq!((memory(100, 175), memory(100, 174)), (Grade::Good, Grade::Warning));
        assert_eq!(grade(clock(WallTime::from_seconds(86_400))), Grade::Fault);
    }
}
