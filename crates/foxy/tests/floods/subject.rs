//! Runs a foxy with default settings in a control group of 512 MB, and samples its memory.

use crate::group::Group;
use crate::kinds::Flood;
use crate::origin::Origin;
use crate::support::black_box::{BlackBox, binary};
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::Duration;

/// Memory limit of the control group in bytes.
const MEMORY: u64 = 512 << 20;

/// Interval between samples of the memory.
const LOOK: Duration = Duration::from_millis(25);

/// The initial and the hard limit on open files, for the flood that leaves foxy few descriptors.
/// foxy may raise the initial limit up to the hard limit.
const FEW: (u64, u64) = (256, 1_024);

/// The foxy under test.
pub struct Subject {
    pub proxy: SocketAddr,
    pub memory: Memory,
    foxy: BlackBox,
    _group: Arc<Group>,
    _folder: tempfile::TempDir,
}

impl Subject {
    /// Starts foxy for a flood. The number of the flood's connections is the number at full size
    /// divided by `smaller`.
    ///
    /// # Errors The reason why this machine has no control group for the test.
    pub fn start(flood: Flood, origin: &Origin, smaller: u64) -> Result<Self, String> {
        let group = Arc::new(Group::new(MEMORY)?);
        let folder = tempfile::tempdir().expect("a folder");
        let mut command = Command::new("sh");
        let limits = match flood {
            Flood::FewDescriptors => format!("ulimit -Sn {} && ulimit -Hn {} &&", FEW.0, FEW.1),
            _ => String::new(),
        };
        command
            .arg("-c")
            .arg(format!("echo $$ > \"$0\" && {limits} exec \"$@\""))
            .arg(group.members());
        command.arg(binary()).env_clear();
        arguments(&mut command, folder.path(), origin, smaller);
        let mut foxy = BlackBox::spawn(&mut command).expect("a shell runs");
        let ready = foxy.ready(Duration::from_secs(60));
        let (proxy, _) = ready.unwrap_or_else(|why| panic!("foxy did not start: {why}"));
        let memory = Memory::watch(&group);
        Ok(Self { proxy, memory, foxy, _group: group, _folder: folder })
    }

    pub fn is_running(&mut self) -> bool {
        self.foxy.is_running()
    }
}

fn arguments(command: &mut Command, folder: &Path, origin: &Origin, smaller: u64) {
    let file = folder.join("foxy.toml");
    // A smaller flood needs a lower limit on connections. Otherwise its connections would not reach
    // the limit.
    let limits = match smaller {
        1 => String::new(),
        smaller => format!("[limits]\nconnections = {}\n", 8_192 / smaller),
    };
    std::fs::write(&file, limits).expect("written");
    command.args([
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--admin",
        "127.0.0.1:0",
        "--access-log",
        "off",
    ]);
    command.args(["--allow-destination", "127.0.0.0/8", "--size", "2G"]);
    command.arg("--name-server").arg(origin.names.to_string());
    command.arg("--store").arg(folder.join("store")).arg("--config").arg(file);
}

/// Values that the sampling thread measures.
#[derive(Default)]
struct Told {
    now: AtomicU64,
    most: AtomicU64,
    /// Largest memory in bytes that the kernel used for TCP, on the whole machine. Some kernels do
    /// not count this memory in control groups.
    sockets: AtomicU64,
    over: AtomicBool,
}

/// Samples the memory of foxy at intervals.
pub struct Memory {
    told: Arc<Told>,
    looks: Option<JoinHandle<()>>,
}

impl Memory {
    fn watch(group: &Arc<Group>) -> Self {
        let told = Arc::<Told>::default();
        let (group, tell) = (Arc::clone(group), Arc::clone(&told));
        let looks = spawn(move || {
            while !tell.over.load(Ordering::SeqCst) {
                let resident = group.resident().unwrap_or(0);
                tell.now.store(resident, Ordering::SeqCst);
                tell.most.fetch_max(resident, Ordering::SeqCst);
                tell.sockets.fetch_max(sockets(), Ordering::SeqCst);
                sleep(LOOK);
            }
        });
        Self { told, looks: Some(looks) }
    }

    /// Returns the memory in bytes that foxy uses now.
    pub fn now(&self) -> u64 {
        self.told.now.load(Ordering::SeqCst)
    }

    /// Returns the largest memory in bytes since the last call.
    pub fn most(&self) -> u64 {
        self.told.most.swap(self.now(), Ordering::SeqCst)
    }

    /// Returns the largest TCP memory of the kernel in bytes since the last call.
    pub fn sockets(&self) -> u64 {
        self.told.sockets.swap(0, Ordering::SeqCst)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.told.over.store(true, Ordering::SeqCst);
        if let Some(looks) = self.looks.take() {
            let _nothing_to_tell = looks.join();
        }
    }
}

/// Reads the memory in bytes that the kernel uses for TCP.
fn sockets() -> u64 {
    let text = std::fs::read_to_string("/proc/net/sockstat").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("TCP: "));
    let pages = line.and_then(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
    pages.unwrap_or(0) * rustix::param::page_size() as u64
}
