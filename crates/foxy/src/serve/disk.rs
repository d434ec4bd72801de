//! The device of a store: the one the user names, else the one its scheme is meant for. The process
//! that serves as helper is this program again, with the command `disk-helper`.

use crate::failure::Failure;
use crate::settings::Settings;
use crate::settings::store_choice::StoreChoice;
use foxy_device::helper::Ending;
use foxy_device::{
    BlockingDevice, DeviceKind, DeviceSettings, Helper, Preference, Root, Writes, open_device,
};
use foxy_schemes::DeviceWish;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Threads for a scheme that is meant for them, as Squid starts for each directory.
pub const AUFS_THREADS: usize = 16;

/// The program of this very process, also when another has taken its place on disk: the two talk
/// without a version.
const OWN_PROGRAM: &str = "/proc/self/exe";

/// A device, and what the start-up message says of it.
pub struct Opened {
    /// The device.
    pub device: Box<dyn BlockingDevice>,
    /// Its name, with the reason if it is not what was asked for.
    pub name: String,
}

/// Opens the device of the store in that folder.
///
/// # Errors
/// The device cannot be had here, or a thread or process that it needs cannot be started.
pub fn open(root: &Root, settings: &Settings, store: &StoreChoice) -> Result<Opened, Failure> {
    let folder = root.path().display();
    let start = |error: std::io::Error| {
        Failure::Failed(format!(
            "store {folder}: cannot start what the disk is to be read by: {error}"
        ))
    };
    let meant = store.scheme.unwrap_or(settings.disk.scheme).row().device;
    let wish = match settings.disk.device {
        "blocking" => DeviceWish::Blocking,
        "threads" => DeviceWish::Threads,
        "helper" => DeviceWish::Helper,
        "uring" => DeviceWish::Any,
        _ => meant,
    };
    let preference = match wish {
        DeviceWish::Any => Preference::Fastest,
        DeviceWish::Blocking => Preference::Blocking,
        DeviceWish::Threads => Preference::Threads,
        DeviceWish::Helper => {
            let device =
                Box::new(helper(root, store.q2.unwrap_or(settings.disk.diskd_q2)).map_err(start)?);
            return Ok(Opened { device, name: "helper".into() });
        }
    };
    let mut wanted = DeviceSettings { preference, ..DeviceSettings::default() };
    if meant == DeviceWish::Threads {
        wanted.threads = AUFS_THREADS;
        wanted.writes =
            if settings.disk.aufs_writes == "waited" { Writes::Waited } else { Writes::Queued };
    }
    let (device, kind) = open_device(root, wanted).map_err(start)?;
    if settings.disk.device == "uring" && kind != DeviceKind::Uring {
        return Err(Failure::Unusable(format!(
            "store {folder}: no io_uring, only {kind}; use --device auto"
        )));
    }
    Ok(Opened { device, name: kind.to_string() })
}

/// A helper in a process of its own. It holds the folder's lock as long as it runs, and takes no
/// signal meant for foxy.
///
/// # Errors
/// When it cannot be started.
pub fn helper(root: &Root, block_at: usize) -> std::io::Result<Helper> {
    let (folder, lock) = (root.path().to_owned(), root.share_lock()?);
    Helper::new(block_at, move |socket: UnixStream| -> std::io::Result<Ending> {
        let mut child = Command::new(OWN_PROGRAM)
            .arg0("foxy")
            .arg(crate::commands::disk_helper::NAME)
            .current_dir(&folder)
            .stdin(OwnedFd::from(socket))
            .stdout(lock.try_clone()?)
            .process_group(0)
            .spawn()?;
        Ok(Box::new(move || {
            // It has nothing more to say; waiting only keeps it from staying as a zombie.
            let _ = child.wait();
        }))
    })
}
