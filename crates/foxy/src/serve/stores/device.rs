//! Opens the device through which a store reads and writes its disk, such as io_uring or threads.
//! The setting `device` or the scheme's default decides.

use crate::failure::Failure;
use crate::settings::Settings;
use crate::settings::store_choice::StoreChoice;
use foxy_cli::disk_helper::{AUFS_THREADS, helper};
use foxy_device::{
    BlockingDevice, DeviceKind, DeviceSettings, Preference, Root, Writes, open_device,
};
use foxy_schemes::PreferredDevice;

pub struct OpenDevice {
    pub device: Box<dyn BlockingDevice>,
    /// Name of the device, for the start-up message.
    pub name: String,
}

impl OpenDevice {
    pub fn open(root: &Root, settings: &Settings, store: &StoreChoice) -> Result<Self, Failure> {
        let disk = &settings.disk;
        let folder = root.path().display();
        let cannot_start = |error: std::io::Error| {
            Failure::Failed(format!("store {folder}: cannot start its device: {error}"))
        };
        let meant = store.scheme.unwrap_or(disk.scheme).row().device;
        let wish = match disk.device {
            "blocking" => PreferredDevice::Blocking,
            "threads" => PreferredDevice::Threads,
            "helper" => PreferredDevice::Helper,
            "uring" => PreferredDevice::Any,
            _ => meant,
        };
        let preference = match wish {
            PreferredDevice::Any => Preference::Fastest,
            PreferredDevice::Blocking => Preference::Blocking,
            PreferredDevice::Threads => Preference::Threads,
            PreferredDevice::Helper => {
                let block_at = store.q2.unwrap_or(disk.diskd_q2);
                let device = Box::new(helper(root, block_at).map_err(cannot_start)?);
                return Ok(Self { device, name: "helper".into() });
            }
        };
        let mut wanted = DeviceSettings { preference, ..DeviceSettings::default() };
        if meant == PreferredDevice::Threads {
            wanted.threads = AUFS_THREADS;
            wanted.writes =
                if disk.aufs_writes == "waited" { Writes::Waited } else { Writes::Queued };
        }
        let (device, kind) = open_device(root, wanted).map_err(cannot_start)?;
        if disk.device == "uring" && kind != DeviceKind::Uring {
            return Err(Failure::Unusable(format!(
                "store {folder}: io_uring is not available, only {kind}; use --device auto"
            )));
        }
        Ok(Self { device, name: kind.to_string() })
    }
}
