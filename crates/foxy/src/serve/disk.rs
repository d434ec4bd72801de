//! The device of a store: the one the user names, else the one its scheme is meant for.

use crate::failure::Failure;
use crate::settings::Settings;
use crate::settings::store_choice::StoreChoice;
use foxy_cli::disk_helper::{AUFS_THREADS, helper};
use foxy_device::{
    BlockingDevice, DeviceKind, DeviceSettings, Preference, Root, Writes, open_device,
};
use foxy_schemes::DeviceWish;

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
