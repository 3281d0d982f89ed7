// Starts `admit lsp` for YAML files; all answers are the server's.

const { workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

exports.activate = () => {
  const settings = workspace.getConfiguration("admit");
  const server = { command: settings.get("path", "admit"), args: ["lsp", ...settings.get("arguments", [])] };
  const options = {
    documentSelector: [{ language: "yaml" }],
    // Policies and definitions that are not open are read anew when they are written.
    synchronize: { fileEvents: workspace.createFileSystemWatcher("**/*.{yaml,yml,json}") },
  };
  client = new LanguageClient("admit", "admit", server, options);
  return client.start();
};

exports.deactivate = () => client?.stop();
