#!/bin/sh
# Generates slack_message.schema.json from Slack's own TypeScript types, for the blocks that Cloud Sweeper sends.
# Needs node and npm; not part of `make setup`, because the result is committed. Run it to follow Slack's types.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
cd "$work"
npm install --silent --no-audit --no-fund @slack/types@3.2.0 ts-json-schema-generator@2.4.0
cat > message.ts <<'TS'
import type {
  ActionsBlock, Button, ContextBlock, DateTimepicker, DividerBlock, HeaderBlock, InputBlock, MessageMetadata, ModalView, PlainTextInput, RichTextBlock, SectionBlock, StaticSelect
} from '@slack/types';
interface Buttons extends Omit<ActionsBlock, 'elements'> {
  elements: (Button | StaticSelect)[];
}
interface Input extends Omit<InputBlock, 'element'> {
  element: DateTimepicker | PlainTextInput;
}
interface Form extends Omit<ModalView, 'blocks'> {
  blocks: (Omit<SectionBlock, 'accessory'> | Input)[];
}
export interface SweeperForm {
  trigger_id: string;
  view: Form;
}
export interface SweeperMessage {
  channel: string;
  text: string;
  blocks: (HeaderBlock | Omit<SectionBlock, 'accessory'> | RichTextBlock | ContextBlock | DividerBlock | Buttons)[];
  metadata: MessageMetadata;
  reply_broadcast?: boolean;
  thread_ts?: string;
  unfurl_links?: boolean;
  unfurl_media?: boolean;
}
export interface SweeperEphemeral {
  channel: string;
  user: string;
  text: string;
  thread_ts?: string;
}
export interface SweeperReply {
  response_type: 'ephemeral';
  replace_original: false;
  text: string;
  blocks?: SweeperMessage['blocks'];
}
export interface Sent {
  reply: SweeperReply;
  message: SweeperMessage;
  ephemeral: SweeperEphemeral;
  form: SweeperForm;
}
TS
npx ts-json-schema-generator --path message.ts --type Sent --no-type-check --jsDoc none --out raw.json
cp node_modules/@slack/types/LICENSE "$here/slack_message.schema.LICENSE"
node -e '
const { readFileSync, writeFileSync } = require("fs");
const raw = JSON.parse(readFileSync("raw.json"));
const comment = "Generated from @slack/types 3.2.0 (MIT License, Copyright (c) 2014- Slack Technologies, LLC; text in slack_message.schema.LICENSE) by slack_schema.sh. Do not edit.";
const out = { $schema: raw.$schema, $comment: comment, $ref: raw.$ref, definitions: raw.definitions };
writeFileSync(process.argv[1], JSON.stringify(out, null, 1) + "\n");
' "$here/slack_message.schema.json"
