//! The settings of how names are looked up.

use super::kind::{Area, Kind, Preset, Setting};

/// Who is asked.
pub const NAME_SERVERS: Setting = Setting {
    key: "name-servers",
    flag: Some("name-server"),
    area: Area::Network,
    kind: Kind::NameServers(|w| &mut w.name_servers),
    default: Preset::Nothing("those of /etc/resolv.conf"),
    doc: "DNS servers that are asked for the addresses of origin servers, instead of the system's. \
          Port 53 unless another is named. Names are then completed by no search list; /etc/hosts still comes first.",
};
