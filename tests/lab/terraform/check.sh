#!/bin/sh
# `make terraform`: everything about the Terraform modules, and the Helm chart beside them, that can be checked without a cloud. It asks nobody for anything: providers come from .setup/terraform (setup.sh), which serves
# their true schemas. Under three minutes on two cores. What it works on is a copy, target/terraform.
set -eu
cd "$(dirname "$0")/../../.."
here=tests/lab/terraform
made=$PWD/.setup/terraform
python=$made/venv/bin/python
copy=$PWD/target/terraform
begun=$(date +%s)

say() { echo "terraform: $(($(date +%s) - begun)) s: $*"; }
fail() {
    echo "terraform: $*" >&2
    exit 1
}

[ -e "$made/made-of" ] || fail "no providers are laid out: run tests/lab/terraform/setup.sh"
[ -d .setup/node/node_modules ] || fail "the evaluator of IAM policies is missing: run tests/lab/setup.sh test"
export TF_CLI_CONFIG_FILE="$made/terraform.rc" TF_IN_AUTOMATION=1 TF_INPUT=0 CHECKPOINT_DISABLE=1

# A type that no provider has is still one that no provider has.
SCHEMA_ONLY=$(grep -rhoE '^(resource|data) "[a-z0-9_]+"' terraform $here/cases --include='*.tf' | cut -d '"' -f 2 | sort -u | tr '\n' ' ')
export SCHEMA_ONLY

say "format"
terraform fmt -check -recursive -diff terraform && terraform fmt -check -recursive -diff $here/cases ||
    fail "it is formatted otherwise: run terraform fmt -recursive terraform tests/lab/terraform/cases"

say "tables of inputs and outputs"
$python $here/tables.py --check

rm -rf "$copy"
mkdir -p "$copy/packaging" "$copy/tests/lab" "$copy/states" "$copy/plans" "$copy/logs"
cp -R terraform "$copy/"
cp -R $here "$copy/tests/lab/"
cp packaging/policy.example.toml "$copy/packaging/"

# one FOLDER: initialises and validates it, runs its own tests, and applies it where there are values for that. A shell of its own, so that two run side by side.
cat >"$copy/one.sh" <<'END'
set -eu
copy=$1
folder=$2
name=$(basename "$folder")
cd "$copy/$folder"
log=$copy/logs/$(echo "$folder" | tr / -)
fail() {
    cat "$log"
    echo "terraform: $folder: $1" >&2
    exit 255
}
terraform init -no-color >"$log" 2>&1 || fail "terraform init failed"
terraform validate -no-color >"$log" 2>&1 || fail "terraform validate found the above"
passed=
if [ -d tests ]; then
    terraform test -no-color >"$log" 2>&1 || fail "terraform test found the above"
    passed=", $(grep -c '^  run .*\.\.\. pass$' "$log") tests"
fi
values=$copy/tests/lab/terraform/values/$name.tfvars.json
case $folder in
terraform/examples/* | */cases/*)
    [ -e "$values" ] || fail "an example needs values to be applied with: $values"
    terraform plan -no-color -out=planned -var-file="$values" >"$log" 2>&1 || fail "terraform plan failed"
    terraform apply -no-color planned >"$log" 2>&1 || fail "terraform apply failed"
    # Once applied there is nothing left to change. This plan knows what the first one could not: ARNs, keys.
    terraform plan -no-color -detailed-exitcode -out=planned -var-file="$values" >"$log" 2>&1 || fail "a second plan is not empty"
    terraform show -json planned >"$copy/plans/$name.json"
    terraform show -json >"$copy/states/$name.json"
    passed="$passed, applied"
    ;;
esac
echo "terraform: $folder: valid$passed"
END

say "init, validate, test, plan and apply of each module and example"
for folder in terraform/modules/sweeper terraform/examples/* $here/cases/* terraform/modules/*; do
    echo "$folder"
done | awk '!seen[$0]++' | xargs -P 2 -n 1 sh "$copy/one.sh" "$copy" || fail "see above"

say "policies: documentation, parliament, evaluation"
$python $here/policies.py "$copy/states" .setup/node
say "what is written: settings, scripts, units, task definitions, template, alarms"
$python $here/files.py "$copy/states"
say "scripts, run in a folder that takes the place of a machine"
$python $here/installs.py "$copy/states"

say "the agent's chart for Kubernetes"
$python $here/chart.py .setup/node

# A scan of the plans knows every value; that of the source alone knows what no example has.
say "checkov"
scan() {
    $made/venv/bin/checkov "$@" --compact --quiet --skip-download >"$copy/logs/checkov" 2>"$copy/logs/checkov-errors" || {
        cat "$copy/logs/checkov"
        fail "checkov found the above: mend it, or say in a line checkov:skip=ID: REASON inside the resource why it is meant so"
    }
    summary=$(grep '^Passed checks:' "$copy/logs/checkov") || fail "checkov scanned nothing: see $copy/logs/checkov"
    echo "terraform: checkov: $summary"
}
scan --framework terraform --directory terraform
scan --framework terraform_plan --repo-root-for-plan-enrichment terraform --file "$copy"/plans/*.json

say "done"
