//! The machine as run records describe it, read from the kernel.

use foxy_cli::machine::Machine as Limits;
use foxy_report::Machine;

pub fn machine() -> Machine {
    let limits = Limits::look();
    Machine {
        cpu: model_name(&read("/proc/cpuinfo")).to_owned(),
        cores: limits.cores,
        memory: limits.memory.map_or(0, |memory| memory.0),
        kernel: format!(
            "{} {}",
            read("/proc/sys/kernel/ostype").trim(),
            read("/proc/sys/kernel/osrelease").trim()
        ),
    }
}

fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

fn model_name(text: &str) -> &str {
    let line = text.lines().find_map(|line| line.strip_prefix("model name"));
    line.and_then(|rest| rest.split_once(':')).map_or("", |(_, name)| name.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_processors_name_is_taken() {
        assert_eq!(
            model_name("processor\t: 0\nmodel name\t: AMD EPYC\nmodel name\t: other\n"),
            "AMD EPYC"
        );
        assert_eq!(model_name("processor: 0\n"), "");
    }
}
