#!/bin/sh
# Prints the class path of JUnit 5 and what it needs: those of Debian and Ubuntu, or in the folder JUNIT.
set -eu

folder="${JUNIT:-/usr/share/java}"
if [ ! -f "$folder/junit-jupiter-api.jar" ]; then
  echo "$folder/junit-jupiter-api.jar: is missing: install junit5, or set JUNIT to a folder with JUnit's jars" >&2
  exit 1
fi
for name in junit-jupiter-api junit-jupiter-engine junit-platform-commons junit-platform-engine junit-platform-launcher \
  junit-platform-console junit-platform-reporting opentest4j opentest4j-reporting-events opentest4j-reporting-schema apiguardian-api \
  picocli; do
  printf '%s:' "$folder/$name.jar"
done
echo "$folder/univocity-parsers.jar"
