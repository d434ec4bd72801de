//! All settings in force as JSON, each with the place where it was written, and its documentation.

use crate::settings::Loaded;
use crate::settings::rows;
use crate::settings::tables::TableTexts;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Returns the settings in force as JSON. `is_live` tells whether a reload can change a setting.
pub fn as_json(loaded: &mut Loaded, is_live: impl Fn(&str) -> bool) -> Value {
    let values: BTreeMap<_, _> = loaded.values().into_iter().collect();
    let setting = |setting: &crate::settings::kind::Setting| {
        let source = loaded.source(setting.key);
        json!({
            "key": setting.key,
            "chapter": setting.chapter,
            "value": values.get(setting.key),
            "default": setting.default.to_string(),
            "source": source.map_or_else(|| "default".to_owned(), ToString::to_string),
            "flag": setting.flag,
            "reload": is_live(setting.key),
            "doc": setting.doc(),
        })
    };
    let table = |texts: TableTexts<'_>| json!({ "name": texts.name, "text": texts.shown });
    json!({
        "file": loaded.file.as_ref().map(|file| file.display().to_string()),
        "settings": rows::all().map(setting).collect::<Vec<_>>(),
        "rules": loaded.rules().map(table).collect::<Vec<_>>(),
        "origins": loaded.origins().map(table).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings;
    use foxy_cli::machine::Machine;
    use std::path::Path;

    #[test]
    fn each_setting_has_value_source_and_documentation() {
        let text = "memory = \"2M\"\nnegative-lifetime = \"7s\"\n";
        let mut loaded = settings::load_text(Path::new("f.toml"), text, &Machine::default())
            .unwrap_or_else(|all| panic!("{all}"));
        let shown = as_json(&mut loaded, |key| key == "negative-lifetime");
        let all = shown["settings"].as_array().expect("a list");
        let of = |key: &str| all.iter().find(|setting| setting["key"] == key).expect("a setting");
        assert_eq!(of("memory")["value"], "\"2 MiB\"");
        assert_eq!(of("memory")["source"], "f.toml:1:1");
        assert_eq!(of("memory")["reload"], false);
        assert_eq!(of("negative-lifetime")["reload"], true);
        assert_eq!(of("size")["source"], "default");
        assert!(all.iter().all(|setting| setting["doc"].as_str().is_some_and(|it| it.len() > 9)));
    }
}
