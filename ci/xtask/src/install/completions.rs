//! Completions for bash, zsh and fish, made of a program's options.
//!
//! Each file lies where the shell looks for it in a prefix that it knows, such as /usr/local. The program that follows
//! the options, and that program's arguments, are completed as file names.

use super::help::Opt;

/// The files for the program `name`, relative to the prefix, with their texts.
pub fn of(name: &str, options: &[Opt]) -> [(String, String); 3] {
    [
        (format!("share/bash-completion/completions/{name}"), bash(name, options)),
        (format!("share/zsh/site-functions/_{name}"), zsh(name, options)),
        (format!("share/fish/vendor_completions.d/{name}.fish"), fish(name, options)),
    ]
}

fn bash(name: &str, options: &[Opt]) -> String {
    let function = format!("_{}", name.replace('-', "_"));
    let names = |is_wanted: &dyn Fn(&Opt) -> bool, separator: &str| {
        let options = options.iter().filter(|option| is_wanted(option));
        let names: Vec<&str> =
            options.flat_map(|option| option.names.iter().map(String::as_str)).collect();
        names.join(separator)
    };
    // A pattern of `case` and what is done where it fits; nothing where no option is so.
    let arm = |is_wanted: &dyn Fn(&Opt) -> bool, action: &str| match names(is_wanted, " | ") {
        names if names.is_empty() => String::new(),
        names => format!("        {names}) {action} ;;\n"),
    };
    let takes_word = |option: &Opt| option.value.is_some() && !option.is_attached;
    let propose = |what: &str| format!(r#"mapfile -t COMPREPLY < <(compgen {what} -- "$word")"#);
    let skip_value = arm(&takes_word, "[[ ${COMP_WORDS[at + 1]} == = ]] && ((at++)); ((at += 2))");
    let hosts = arm(&|option| values(option) == Some(Values::Hosts), &propose("-A hostname"));
    let folders = arm(&|option| values(option) == Some(Values::Folders), &propose("-d"));
    let all = propose(&format!("-W '{}'", names(&|_| true, " ")));
    format!(
        r#"# Completion of {name} for bash, made of what `{name} --help` prints.
{function}() {{
    local at=1 word=${{COMP_WORDS[COMP_CWORD]}}
    COMPREPLY=()
    # After the options comes a program with arguments of its own. An equals sign is a word.
    while ((at < COMP_CWORD)); do
        case ${{COMP_WORDS[at]}} in
{skip_value}        =) ((at += 2)) ;;
        --) return ;;
        -*) ((at++)) ;;
        *) return ;;
        esac
    done
    if ((at > COMP_CWORD)); then
        local option=${{COMP_WORDS[COMP_CWORD - 1]}}
        [[ $option == = ]] && option=${{COMP_WORDS[COMP_CWORD - 2]}}
        case $option in
{hosts}{folders}        esac
    elif [[ $word == -* ]]; then
        {all}
    fi
}}
complete -o bashdefault -o default -F {function} {name}
"#
    )
}

fn zsh(name: &str, options: &[Opt]) -> String {
    let mut lines = Vec::new();
    for option in options {
        let text = brief(&option.text).replace(['[', ']'], "").replace(':', "\\:");
        let value = option.value.as_ref().map(|value| {
            let action = match values(option) {
                Some(Values::Hosts) => "_hosts",
                Some(Values::Folders) => "_files -/",
                Some(Values::Files) => "_files",
                None => " ",
            };
            let optional = if option.is_attached { ":" } else { "" };
            format!(":{optional}{}:{action}", value.replace(':', "\\:"))
        });
        for spelling in &option.names {
            // What joins an option to its value.
            let join = match (&option.value, option.is_attached) {
                (None, _) => "",
                (Some(_), true) => "=-",
                (Some(_), false) if spelling.starts_with("--") => "=",
                (Some(_), false) if spelling.len() == 2 => "+",
                (Some(_), false) => "",
            };
            let value = value.as_deref().unwrap_or_default();
            let spec = format!("*{spelling}{join}[{text}]{value}").replace('\'', "'\\''");
            lines.push(format!("    '{spec}' \\\n"));
        }
    }
    format!(
        "#compdef {name}\n# Completion of {name} for zsh, made of what `{name} --help` prints.\n_arguments -A '-*' \\\n{}    '*::file:_files'\n",
        lines.concat()
    )
}

fn fish(name: &str, options: &[Opt]) -> String {
    let mut text =
        format!("# Completion of {name} for fish, made of what `{name} --help` prints.\n");
    for option in options {
        text += &format!("complete -c {name}");
        for name in &option.names {
            text += &match name.strip_prefix("--") {
                Some(long) => format!(" -l {long}"),
                None if name.len() == 2 => format!(" -s {}", &name[1..]),
                None => format!(" -o {}", name.trim_start_matches('-')),
            };
        }
        text += match (values(option), &option.value) {
            _ if option.is_attached => "",
            (Some(Values::Files), _) => " -r -F",
            (Some(Values::Folders), _) => " -x -a '(__fish_complete_directories)'",
            (Some(Values::Hosts), _) => " -x -a '(__fish_print_hostnames)'",
            (None, Some(_)) => " -x",
            (None, None) => "",
        };
        let brief = brief(&option.text).replace('\\', "\\\\").replace('\'', "\\'");
        text += &format!(" -d '{brief}'\n");
    }
    text
}

/// What an option's value may be, by what the help calls it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Values {
    Files,
    Folders,
    Hosts,
}

fn values(option: &Opt) -> Option<Values> {
    match option.value.as_deref()? {
        "FILE" => Some(Values::Files),
        "FOLDER" => Some(Values::Folders),
        value if value.starts_with("HOST") => Some(Values::Hosts),
        _ => None,
    }
}

/// What fits beside a name.
fn brief(text: &str) -> &str {
    let end = [";", " (", ": ", ", with "].iter().filter_map(|mark| text.find(mark)).min();
    &text[..end.unwrap_or(text.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_beginning_of_a_text_is_shown() {
        assert_eq!(brief("Number of PEs (also -np N); more"), "Number of PEs");
        assert_eq!(brief("Print help"), "Print help");
    }
}
