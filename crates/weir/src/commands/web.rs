//! The live page and the metrics of a serving verb.

use crate::cli::WebArgs;
use crate::error::CliError;
use crate::output;
use std::path::Path;
use std::sync::Arc;
use weir_server::Handle;
use weir_web::{Bound, Content, Endpoint, Token};

/// The sockets of a verb, before its server runs.
pub(super) struct Web<'a> {
    page: Option<Bound>,
    metrics: Option<Bound>,
    /// The control socket, beside which the token of the page is written.
    token_at: Option<&'a Path>,
}

impl<'a> Web<'a> {
    /// Listens on the addresses of `args`.
    pub(super) fn bind(args: &WebArgs, control: Option<&'a Path>) -> Result<Self, CliError> {
        if args.web_control && control.is_none() {
            return Err(CliError::Refused(
                "--web-control: the token is written beside the control socket; give --control PATH"
                    .to_owned(),
            ));
        }
        if args.web_remote && args.web.is_none() && args.metrics.is_none() {
            let words = "--web-remote is for --web and --metrics, and neither is given";
            return Err(CliError::Refused(words.to_owned()));
        }
        let bound = |address: &String| Bound::new(address, args.web_remote);
        let page = args.web.as_ref().map(bound).transpose()?;
        let metrics = args.metrics.as_ref().map(bound).transpose()?;
        Ok(Self { page, metrics, token_at: control.filter(|_| args.web_control) })
    }

    /// Serves the page and the metrics of a running server, and says where.
    pub(super) fn serve(self, server: &Handle) -> Result<Vec<Endpoint>, CliError> {
        let mut endpoints = Vec::new();
        if let Some(page) = self.page {
            let token = self.token_at.map(token).transpose()?;
            let secret = token.as_ref().map(|(token, file)| {
                format!("token for changes: {} (also in {})", token.secret(), file.display())
            });
            let token = token.map(|(token, _)| token);
            let page = page.audited_by(server.audit().clone());
            let endpoint = page.serve(Arc::new(server.clone()), Content::Page(token))?;
            output::talk(&format!("live page http://{}/", endpoint.address()));
            secret.iter().for_each(|line| output::talk(line));
            endpoints.push(endpoint);
        }
        if let Some(metrics) = self.metrics {
            let metrics = metrics.audited_by(server.audit().clone());
            let endpoint = metrics.serve(Arc::new(server.clone()), Content::Metrics)?;
            output::talk(&format!("metrics http://{}/metrics", endpoint.address()));
            endpoints.push(endpoint);
        }
        Ok(endpoints)
    }
}

/// Creates the token in a file beside the control socket.
fn token(control: &Path) -> Result<(Token, std::path::PathBuf), CliError> {
    let mut file = control.as_os_str().to_owned();
    file.push(".token");
    let file = std::path::PathBuf::from(file);
    let failed =
        |source| CliError::Folder { context: format!("writing {}", file.display()), source };
    Ok((Token::create(&file).map_err(failed)?, file))
}
