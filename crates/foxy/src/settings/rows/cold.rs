//! Settings of the chapter "Cold tier".

use super::super::cold::{endpoint, price, store_url, word};
use super::super::kind::{Kind, Preset, Setting};
use std::path::PathBuf;
use std::time::Duration;

settings! {
    struct ColdTier, written as WrittenColdTier in cold, chapter "Cold tier";

    /// Bucket and beginning of the objects' names, in a store that speaks S3
    /// ([Cold tier](fleet.md#cold-tier)).
    url: optional String = "cold.url" flag "cold-url",
        text(store_url, "URL", "s3://cache/foxy"), Nothing("foxy has no cold tier");

    /// URL of the store's server.
    endpoint: optional String = "cold.endpoint" flag "cold-endpoint",
        text(endpoint, "URL", "https://s3.example.org"), Nothing("Amazon S3");

    /// Region of the bucket.
    region: given String = "cold.region" flag "cold-region",
        text(word, "REGION", "eu-central-1"), Fixed("us-east-1");

    /// File with `KEY-ID:SECRET`. foxy reads it like `parent-credentials-file`.
    credentials_file: optional PathBuf = "cold.credentials-file" flag "cold-credentials-file",
        File, Nothing("the role of the machine");

    /// Time limit to read a response from the cold store. After this time, the request is a miss.
    timeout: given Duration = "cold.timeout" flag "cold-timeout", span, Fixed("500ms");

    /// Price of 1,000 PUT or LIST requests, for the metric `foxy_cold_cost_total`.
    put_price: given String = "cold.put-price" flag "cold-put-price",
        text(price, "PRICE", "0.005"), Fixed("0.005");

    /// Price of 1,000 GET requests.
    get_price: given String = "cold.get-price" flag "cold-get-price",
        text(price, "PRICE", "0.0004"), Fixed("0.0004");
}
