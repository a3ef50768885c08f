#!/usr/bin/env bash
# mutate.sh LIST NAME DIR: makes DIR a copy of the workspace in which the list's crate has its mutant NAME.
# mutate.sh LIST: prints the names of LIST, one a line. Fails if there are none, or one stands twice or fits no code.
#
# The crate is copied to DIR; the other members are links to the originals, so that anything builds in DIR as it does
# here. Files keep their times unless they differ: use the same DIR again, and little is rebuilt.
# A list says at its beginning which crate it changes, and has blocks between blank lines:
#
#     crate: nbbs
#
#     name: swap-relaxed
#     file: block/free.rs         relative to the crate's src
#     find: exact text of one line
#     replace: text               nothing deletes what is found
#     nth: 2                      if `find` occurs more than once; otherwise it must occur exactly once
#
# A line that begins with # is a comment. `find` and `replace` run to the end of the line, less leading blanks.
# A block may have several `file`, `find`, `replace` groups, which are applied in order. `by`, `shows`, `features`,
# `flags` and `scenes` are for the check that tries the mutant. Any other line is refused.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
list=${1:?a list of mutants} name=${2:-} dir=${3:-}
crate=$(sed -n 's/^crate: *\([^[:space:]]*\)[[:space:]]*$/\1/p' "$list")
[ -d "$root/${crate:-no crate}/src" ] || { echo "mutate.sh: $list does not name its crate" >&2; exit 2; }

# mutants SRC [NAME]: makes the changes of NAME in the files of SRC. Without a name, makes those of each mutant in
# memory, and prints its name.
mutants() {
    perl -e '
        my ($list, $src, $chosen) = @ARGV;
        my $text = text($list);
        only_fields($text);
        my @blocks = grep { /^(name|file|find|replace):/m } split /(?<=\n)\n+/, $text;
        my %seen;
        for my $block (@blocks) {
            my ($name, @more) = $block =~ /^name: *(\S+) *$/mg;
            defined $name && !@more or die "mutate.sh: $list has a block without one name:\n$block";
            die "mutate.sh: $list has $name twice\n" if $seen{$name}++;
            next if defined $chosen && $name ne $chosen;
            my %texts = changed($name, $block);
            if (!defined $chosen) { print "$name\n"; next }
            for (keys %texts) {
                open my $file, ">", "$src/$_" or die "mutate.sh: $_: $!\n";
                print $file $texts{$_};
            }
        }
        %seen or die "mutate.sh: $list has no mutants\n";
        !defined $chosen || $seen{$chosen} or die "mutate.sh: $list has no mutant $chosen\n";

        sub only_fields {
            my ($name, $line) = ("no mutant", 0);
            for (split /\n/, $_[0]) {
                $line++;
                $name = "no mutant" unless length;
                $name = $1 if /^name: *(\S+)/;
                /^(#|$|(crate|name|file|find|replace|nth|by|shows|features|flags|scenes):)/ or
                    die "mutate.sh: $list, line $line, $name: no such field: $_\n";
            }
        }

        sub changed {
            my ($name, $block) = @_;
            my %texts;
            my @groups = split /^(?=file:)/m, $block;
            shift @groups;
            @groups or die "mutate.sh: $name names no file\n";
            for (@groups) {
                my %of = (nth => 0, /^(file|find|replace|nth):[ \t]*(.*?)$/mg);
                length($of{find} // "") or die "mutate.sh: $name has nothing to find\n";
                defined $of{replace} or die "mutate.sh: $name has no `replace`\n";
                my $text = \($texts{$of{file}} //= text("$src/$of{file}"));
                my $count = () = $$text =~ /\Q$of{find}\E/g;
                my $fits = $of{nth} ? $of{nth} <= $count : $count == 1;
                $fits or die "mutate.sh: $name: \"$of{find}\" occurs $count times in $of{file}\n";
                $of{find} ne $of{replace} or die "mutate.sh: $name changes nothing in $of{file}\n";
                my $at = 0;
                $$text =~ s/\Q$of{find}\E/++$at == ($of{nth} || 1) ? $of{replace} : $&/ge;
            }
            return %texts;
        }

        sub text {
            open my $file, "<", $_[0] or die "mutate.sh: $_[0]: $!\n";
            local $/;
            return <$file>;
        }
    ' "$list" "$@"
}

[ -n "$name" ] || { mutants "$root/$crate/src"; exit; }
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

mutants "$dir/new/src" "$name"

# Only what differs is touched, or goes.
(cd "$dir/new" && find . -xtype f) | while read -r file; do
    cmp -s "$dir/new/$file" "$dir/$crate/$file" || install -D -m 644 "$dir/new/$file" "$dir/$crate/$file"
done
(cd "$dir/$crate" && find . -type f) | while read -r file; do
    [ -e "$dir/new/$file" ] || rm "$dir/$crate/$file"
done
rm -rf "$dir/new"
