#!/usr/bin/env bash
# mutate.sh LIST NAME DIR: makes DIR a copy of the workspace in which a crate has the mutant NAME of LIST.
# mutate.sh LIST: prints the names of LIST, one a line; fails if there are none, or one stands twice.
#
# The crate, CRATE or nbbs, is copied to DIR; the other members are links to the originals, so that anything builds
# in DIR as it does here. Files keep their times unless they differ: use the same DIR again, and little is rebuilt.
# A list has blocks between blank lines:
#
#     name: swap-relaxed
#     file: block/free.rs         relative to the crate's src
#     find: exact text of one line
#     replace: text
#     nth: 2                      if `find` occurs more than once; otherwise it must occur exactly once
#
# A line that begins with # is a comment. `find` and `replace` run to the end of the line, less leading blanks.
# A block may have several `file`, `find`, `replace` groups, which are applied in order.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
list=${1:?a list of mutants} name=${2:-} dir=${3:-} crate=${CRATE:-nbbs}

if [ -z "$name" ]; then
    names=$(sed -n 's/^name: *//p' "$list")
    [ -n "$names" ] || { echo "mutate.sh: $list has no mutants" >&2; exit 2; }
    [ -z "$(sort <<<"$names" | uniq -d)" ] || { echo "mutate.sh: $list has a name twice" >&2; exit 2; }
    echo "$names"
    exit
fi
[ -n "$dir" ] || { echo "mutate.sh: no directory given" >&2; exit 2; }

[ ! -L "$dir/$crate" ] || { echo "mutate.sh: $dir has another crate's mutants, and only a link to $crate" >&2; exit 2; }
mkdir -p "$dir/$crate" "$dir/new"
cp "$root/Cargo.toml" "$root/Cargo.lock" "$dir/"
for entry in "$root"/*; do
    case ${entry##*/} in
    "$crate" | target | Cargo.*) ;;
    *) ln -sfn "$entry" "$dir/${entry##*/}" ;;
    esac
done
rm -rf "$dir/new" && cp -R "$root/$crate" "$dir/new"

NAME=$name perl -e '
    my ($list, $src) = @ARGV;
    local $/ = "";
    open my $in, "<", $list or die "mutate.sh: $list: $!\n";
    my ($block) = grep { /^name: *\Q$ENV{NAME}\E *$/m } <$in>;
    $block or die "mutate.sh: $list has no mutant $ENV{NAME}\n";
    my @groups = split /^(?=file:)/m, $block;
    shift @groups;
    @groups or die "mutate.sh: $ENV{NAME} names no file\n";
    undef $/;
    for (@groups) {
        my %of = (replace => "", nth => 0, /^(file|find|replace|nth):[ \t]*(.*?)$/mg);
        length($of{find} // "") or die "mutate.sh: $ENV{NAME} has nothing to find\n";
        open my $file, "<", "$src/$of{file}" or die "mutate.sh: $of{file}: $!\n";
        my $text = <$file>;
        my $count = () = $text =~ /\Q$of{find}\E/g;
        my $good = $of{nth} ? $of{nth} <= $count : $count == 1;
        $good or die "mutate.sh: $ENV{NAME}: \"$of{find}\" occurs $count times in $of{file}\n";
        my $seen = 0;
        $text =~ s/\Q$of{find}\E/++$seen == ($of{nth} || 1) ? $of{replace} : $&/ge;
        open $file, ">", "$src/$of{file}" or die "mutate.sh: $of{file}: $!\n";
        print $file $text;
    }
' "$list" "$dir/new/src"

# Only what differs is touched, or goes.
(cd "$dir/new" && find . -xtype f) | while read -r file; do
    cmp -s "$dir/new/$file" "$dir/$crate/$file" || install -D -m 644 "$dir/new/$file" "$dir/$crate/$file"
done
(cd "$dir/$crate" && find . -type f) | while read -r file; do
    [ -e "$dir/new/$file" ] || rm "$dir/$crate/$file"
done
rm -rf "$dir/new"
