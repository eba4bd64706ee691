//! The protocol: the list of tools, and calls.

use crate::error::ServeError;
use crate::output::Output;
use crate::process::{self, Answer, NoAnswer};
use crate::roots::Roots;
use crate::settings::Settings;
use crate::tools::{self, Prepared};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData,
    Implementation, JsonObject, ListToolsResult, PaginatedRequestParams, ServerCapabilities,
    ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};
use serde_json::Value;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// The text that clients show to their model.
const INSTRUCTIONS: &str = "Weir knows the limits of cloud storage. diagnose finds the limit that \
    throttles an observed system, simulate predicts a workload on a layout, plan finds the cheapest \
    layout for a need, fit says whether a layout carries a need, tune finds the cheapest changes of a \
    layout that reach a goal, and compare says whether two systems differ by more than noise. catalog and \
    prices look up limits and prices, each with its source and date. All tools only read. Files are \
    named relative to the folders of the server; layouts, jobs and needs can be given as text.";

/// A server for one client.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    settings: Arc<Settings>,
    roots: Arc<Roots>,
    /// Permits of calls at a time.
    calls: Arc<Semaphore>,
}

impl Server {
    /// Creates a server, and resolves its roots.
    pub(crate) fn new(settings: Settings) -> Result<Self, ServeError> {
        let roots = Arc::new(Roots::new(&settings.roots, settings.limits.file)?);
        let calls = Arc::new(Semaphore::new(settings.limits.calls));
        Ok(Self { settings: Arc::new(settings), roots, calls })
    }

    /// Runs a prepared call.
    async fn run(&self, prepared: Prepared) -> CallToolResult {
        let limits = self.settings.limits;
        let Ok(_permit) = self.calls.acquire().await else {
            return refused("the server is ending".to_owned());
        };
        let mut arguments = self.settings.arguments.clone();
        arguments.extend(prepared.arguments);
        let folder = prepared.folder.path().to_owned();
        let ended = process::run(&self.settings.program, arguments, folder, limits).await;
        match ended {
            Ok(answer) if answer.is_out_of_memory() => {
                let messages = answer.messages.trim();
                refused(format!(
                    "the verb needs more than {} bytes of memory, the limit of this server: ask for less, or \
                     start it with a larger --max-memory\n{messages}",
                    limits.memory
                ))
            }
            Ok(answer) => told(answer, prepared.output),
            Err(NoAnswer::Late) => refused(format!(
                "no answer within {} s, the limit of this server: ask for less, for example a shorter \
                 runtime or fewer seeds",
                limits.time.as_secs_f64()
            )),
            Err(NoAnswer::Long) => refused(format!(
                "the answer has more than {} bytes, the limit of this server: ask for less, or for text \
                 instead of JSON",
                limits.output
            )),
            Err(NoAnswer::Failed(reason)) => {
                refused(format!("the verb could not be run: {reason}"))
            }
        }
    }

    /// Checks a call and prepares its process.
    fn prepare(&self, name: &str, arguments: JsonObject) -> Result<Prepared, Refused> {
        let size = Value::Object(arguments.clone()).to_string().len();
        let most = self.settings.limits.arguments;
        if size > most {
            return Err(Refused::Call(format!(
                "the arguments have {size} bytes, and this server takes at most {most}: name a file \
                 instead of its text"
            )));
        }
        let tool = tools::find(name).ok_or_else(|| Refused::Tool(tools::unknown(name)))?;
        tool.prepare(arguments, &self.roots).map_err(Refused::Call)
    }
}

/// A call that is refused before anything runs.
enum Refused {
    /// There is no such tool.
    Tool(String),
    /// The arguments are wrong.
    Call(String),
}

/// Returns the result of a call that failed, with a message for the model.
fn refused(message: String) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(message)])
}

/// Returns the answer of a verb as the result of a call.
fn told(answer: Answer, output: Output) -> CallToolResult {
    let Answer { output: text, messages, code } = answer;
    let messages = messages.trim();
    let is_answer = matches!(code, Some(0 | 1)) && !text.is_empty();
    if !is_answer {
        let words = match (messages, code) {
            ("", Some(code)) => format!("the verb ended with exit code {code} and no message"),
            ("", None) => "a signal ended the verb".to_owned(),
            (messages, _) => messages.strip_prefix("weir: ").unwrap_or(messages).to_owned(),
        };
        return refused(words);
    }
    let structured = match output {
        Output::Json => serde_json::from_str::<Value>(&text).ok().filter(Value::is_object),
        Output::Text => None,
    };
    let mut content = vec![ContentBlock::text(text)];
    if code == Some(1) {
        content.push(ContentBlock::text("exit code 1: the answer is no"));
    }
    if !messages.is_empty() {
        content.push(ContentBlock::text(format!("messages:\n{messages}")));
    }
    let mut result = CallToolResult::success(content);
    result.structured_content = structured;
    result
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        let about = Implementation::new("weir", env!("CARGO_PKG_VERSION")).with_title("Weir");
        ServerConfig::new(capabilities).with_server_info(about).with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools::all().map(tools::Tool::definition).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let result = match self.prepare(&request.name, arguments) {
            Err(Refused::Tool(message)) => return Err(ErrorData::invalid_params(message, None)),
            Err(Refused::Call(message)) => refused(message),
            Ok(prepared) => tokio::select! {
                // Dropping the other future kills its process.
                () = context.ct.cancelled() => refused("cancelled".to_owned()),
                result = self.run(prepared) => result,
            },
        };
        Ok(result.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told_of(code: Option<i32>, text: &str, messages: &str) -> CallToolResult {
        let (output, messages) = (text.to_owned(), messages.to_owned());
        told(Answer { output, messages, code }, Output::Json)
    }

    fn texts(result: &CallToolResult) -> Vec<String> {
        result.content.iter().filter_map(|own| Some(own.as_text()?.text.clone())).collect()
    }

    #[test]
    fn a_negative_answer_is_an_answer() {
        let no = told_of(Some(1), "{\"is_worse\":true}", "note: x");
        assert_eq!(no.is_error, Some(false));
        assert_eq!(no.structured_content, Some(serde_json::json!({"is_worse": true})));
        let expect = ["{\"is_worse\":true}", "exit code 1: the answer is no", "messages:\nnote: x"];
        assert_eq!(texts(&no), expect);
    }

    #[test]
    fn a_failure_has_the_message_of_the_verb() {
        let wrong = told_of(Some(2), "", "weir: a.toml:1: no volume\n");
        assert_eq!(
            (wrong.is_error, texts(&wrong)),
            (Some(true), vec!["a.toml:1: no volume".into()])
        );
        // A verdict without output, for example a run that lost data, is a failure.
        assert_eq!(told_of(Some(1), "", "weir: lost").is_error, Some(true));
        assert_eq!(texts(&told_of(None, "", "")), ["a signal ended the verb"]);
    }
}
