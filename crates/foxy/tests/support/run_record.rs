//! The run record of a long test, in the format of the records that lab commands write.

use foxy_report::{Machine, Measure, Record, Setup, write_records};

pub struct RunRecord(Vec<Record>);

impl RunRecord {
    pub fn new(command: &str, seed: u64, scale: f64) -> Self {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let (processors, memory) = (read("/proc/cpuinfo"), read("/proc/meminfo"));
        let after = |text: &str, name: &str| -> String {
            let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("");
            line.trim_start_matches(['\t', ' ', ':']).trim_end_matches(" kB").to_owned()
        };
        let machine = Machine {
            cpu: after(&processors, "model name"),
            cores: std::thread::available_parallelism().map_or(0, Into::into),
            memory: after(&memory, "MemTotal").parse().map_or(0, |kilobytes: u64| kilobytes << 10),
            kernel: read("/proc/sys/kernel/ostype").trim().to_owned()
                + " "
                + read("/proc/sys/kernel/osrelease").trim(),
        };
        let version =
            std::process::Command::new(super::black_box::binary()).arg("--version").output();
        let version =
            version.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
        Self(vec![Record::Setup(Setup {
            program: "foxy".into(),
            version: version.unwrap_or_default().trim_start_matches("foxy ").to_owned(),
            command: command.into(),
            machine,
            seed,
            scale,
            quick: false,
            started: foxy_base::clock::wall().seconds(),
        })])
    }

    pub fn measure(&mut self, name: &str, subject: &str, value: f64, unit: &str) {
        self.0.push(Record::Measure(Measure::once(name, subject, value, unit)));
    }

    pub fn add(&mut self, record: Record) {
        self.0.push(record);
    }

    /// Writes all records to `file`. `held` says whether all bounds were met; the last record
    /// contains it.
    pub fn write(mut self, file: Option<&str>, held: bool) {
        self.0.push(Record::End { held });
        if let Some(file) = file {
            let mut out = std::fs::File::create(file).expect("the file for the record can be made");
            write_records(&mut out, &self.0).expect("written");
        }
    }
}
