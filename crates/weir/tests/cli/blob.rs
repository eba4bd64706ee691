//! Page blobs over REST, with Azure's own SDKs and with requests made by hand.

mod client;
mod crash;
mod hostile;
mod limits;
mod refused;
mod sdk;
mod service;
mod shared;
mod upgrade;

use crate::common::{Place, Server};
use client::Client;
pub(crate) use client::KEY;

/// A server of blobs and a client of it.
pub(crate) struct Rig {
    pub(crate) place: Place,
    pub(crate) server: Server,
    pub(crate) client: Client,
}

impl Rig {
    /// Serves `layout`, and blobs on a port that is free.
    pub(crate) fn new(place: Place, layout: &str, args: &[&str]) -> Self {
        place.file("layout.toml", layout);
        Self::start(place, args)
    }

    /// Stops it and serves the same again.
    fn again(self, args: &[&str]) -> Self {
        self.server.stop();
        Self::start(self.place, args)
    }

    fn start(place: Place, args: &[&str]) -> Self {
        let serve = ["serve", "layout.toml", "--nbd", "unix:nbd.sock", "--blob", "127.0.0.1:0"];
        let mut command = place.weir(&[&serve, args].concat());
        let out = std::fs::File::create(place.path("out")).expect("a file");
        command.stdout(out);
        let server = Server::start(command);
        let said = std::fs::read_to_string(place.path("out")).expect("text");
        let url = said.lines().find_map(|line| line.strip_prefix("blobs "));
        let url = url.expect("blobs are served").to_owned();
        Self { place, server, client: Client::new(&url) }
    }

    /// Returns the connection string for SDKs.
    fn connection(&self) -> String {
        let (url, key) = (&self.client.url, client::KEY);
        let protocol = url.split(':').next().unwrap_or_default();
        format!(
            "DefaultEndpointsProtocol={protocol};AccountName=devstoreaccount1;AccountKey={key};\
             BlobEndpoint={url};"
        )
    }
}
