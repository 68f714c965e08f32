#!/bin/sh
# Builds the chat page of `mote serve` into llm_server/page/dist.
set -eu

page="$(dirname "$0")/../llm_server/page"
# shellcheck source=scripts/npm.sh
. "$(dirname "$0")/npm.sh"
cd "$page"
npm ci --silent
node build.mjs
