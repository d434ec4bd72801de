//! A foxy with defaults in a control group of 512 MB, and its memory as time goes by.

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

/// All the memory that foxy has.
const MEMORY: u64 = 512 << 20;

/// Between two looks at the memory.
const LOOK: Duration = Duration::from_millis(25);

/// Descriptors where they are few: at first, and at most.
const FEW: (u64, u64) = (256, 1_024);

/// The running foxy.
pub struct Subject {
    pub proxy: SocketAddr,
    pub memory: Memory,
    foxy: BlackBox,
    _group: Arc<Group>,
    _folder: tempfile::TempDir,
}

impl Subject {
    /// Starts a subject for a flood that is `smaller` times smaller than at full size.
    ///
    /// # Errors
    /// Why there can be no control group here.
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
    // A flood of a smaller size meets a limit that is smaller too.
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

/// Samples of the memory.
#[derive(Default)]
struct Told {
    now: AtomicU64,
    most: AtomicU64,
    /// The most that the kernel held for TCP, on the whole machine: no group counts that
    /// everywhere.
    sockets: AtomicU64,
    over: AtomicBool,
}

/// Memory that is looked at again and again.
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

    /// Bytes held now.
    pub fn now(&self) -> u64 {
        self.told.now.load(Ordering::SeqCst)
    }

    /// The most that was held since this was last asked.
    pub fn most(&self) -> u64 {
        self.told.most.swap(self.now(), Ordering::SeqCst)
    }

    /// The most that the kernel held for TCP since this was last asked.
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

/// Bytes that the kernel holds for TCP.
fn sockets() -> u64 {
    let text = std::fs::read_to_string("/proc/net/sockstat").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("TCP: "));
    let pages = line.and_then(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
    pages.unwrap_or(0) * rustix::param::page_size() as u64
}
