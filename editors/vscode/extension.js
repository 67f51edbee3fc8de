// Starts `skillc lsp` and hands the editor's questions to it. Everything that knows the language is in the server.

"use strict";

const fs = require("fs");
const path = require("path");
const vscode = require("vscode");
const { LanguageClient, TransportKind } = require("vscode-languageclient/node");

let client;

/** The command that starts the server: as configured, else from the workspace's own environment, else from the path. */
function command() {
  const settings = vscode.workspace.getConfiguration("skillc");
  const more = settings.get("arguments") || [];
  const given = settings.get("path");
  if (given) {
    return { command: given, args: ["lsp", ...more] };
  }
  const interpreter = settings.get("interpreter");
  if (interpreter) {
    return { command: interpreter, args: ["-m", "skillc", "lsp", ...more] };
  }
  const inside = process.platform === "win32" ? ["Scripts", "skillc.exe"] : ["bin", "skillc"];
  for (const folder of vscode.workspace.workspaceFolders || []) {
    const own = path.join(folder.uri.fsPath, ".venv", ...inside);
    if (fs.existsSync(own)) {
      return { command: own, args: ["lsp", ...more] };
    }
  }
  return { command: "skillc", args: ["lsp", ...more] };
}

async function start() {
  if (!vscode.workspace.isTrusted) {
    return;
  }
  const server = { ...command(), transport: TransportKind.stdio };
  const options = {
    documentSelector: [
      { scheme: "file", language: "skill" },
      { scheme: "untitled", language: "skill" },
    ],
  };
  client = new LanguageClient("skillc", "skillc", server, options);
  try {
    await client.start();
  } catch (error) {
    const open = "Open the settings";
    const told = `\`${server.command}\` could not be started: ${error.message}. Install it with pip install "skillc[lsp]", or say where it is.`;
    if ((await vscode.window.showErrorMessage(told, open)) === open) {
      vscode.commands.executeCommand("workbench.action.openSettings", "skillc");
    }
  }
}

async function stop() {
  const running = client;
  client = undefined;
  if (running && running.needsStop()) {
    await running.stop();
  }
}

async function restart() {
  await stop();
  await start();
}

async function activate(context) {
  context.subscriptions.push(
    vscode.commands.registerCommand("skillc.restart", restart),
    vscode.workspace.onDidGrantWorkspaceTrust(start),
    vscode.workspace.onDidChangeConfiguration((change) => {
      if (["path", "interpreter", "arguments"].some((name) => change.affectsConfiguration(`skillc.${name}`))) {
        return restart();
      }
    })
  );
  await start();
}

module.exports = { activate, deactivate: stop };
