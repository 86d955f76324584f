/// Completion for bash, without other packages.
enum BashCompletion {
  static func render(_ commands: [CompletionScript.Command], _ topics: CompletionScript.TopicSource?)
    -> String
  {
    let program = String(commands[0].program)
    let function = "_" + CompletionScript.identifier(program)
    return """
      # Completion of \(program) for bash.

      # What comes after the words so far: sets members, options, valued (those with a value) and operands.
      \(function)_command() {
        members= options= valued= operands=
        case $1 in
      \(commands.map(command).joined(separator: "\n"))
        esac
      }

      # What the value of an option can be: sets kind and choices.
      \(function)_value() {
        kind= choices=
        case "$1 $2" in
      \(values(of: commands).joined(separator: "\n"))
        esac
      }

      \(topics.map(offering) ?? "")\
      \(function)() {
        local command=\(program) members options valued operands kind choices
        local -a words=() places=()
        local word index joins= option= count=0 current ends=
        # The shell divides words at = and : as well.
        for ((index = 1; index <= COMP_CWORD; index++)); do
          word=${COMP_WORDS[index]}
          if [[ -n $word && -z ${word//[=:]/} && ${#words[@]} -gt 0 ]]; then
            words[${#words[@]} - 1]+=$word
            joins=yes
          elif [[ -n $joins ]]; then
            words[${#words[@]} - 1]+=$word
            joins=
          else
            words+=("$word")
          fi
        done
        current=
        if ((${#words[@]} > 0)); then
          current=${words[${#words[@]} - 1]}
          unset "words[${#words[@]} - 1]"
        fi
        \(function)_command "$command"
        for word in "${words[@]}"; do
          if [[ -n $option ]]; then
            option=
          elif [[ -z $ends && $word == -- ]]; then
            ends=yes
          elif [[ -z $ends && $word == --*=* ]]; then
            :
          elif [[ -z $ends && $word == -* ]]; then
            [[ " $valued " == *" $word "* ]] && option=$word
          elif [[ " $members " == *" $word "* ]]; then
            command+=" $word"
            \(function)_command "$command"
          else
            count=$((count + 1))
          fi
        done
        kind=words choices=
        if [[ -n $option ]]; then
          \(function)_value "$command" "$option"
        elif [[ -z $ends && $current == --*=* ]]; then
          \(function)_value "$command" "${current%%=*}"
          current=${current#*=}
        elif [[ -z $ends && $current == -* ]]; then
          choices=$options
        elif [[ -n $members ]]; then
          choices=$members
        else
          # The n-th word of these is what the n-th operand can be.
          read -ra places <<<"$operands"
          word=${places[count]-}
          case $word in
            files | directories | topics) kind=$word ;;
            words:*) choices=${word#words:} choices=${choices//,/ } ;;
          esac
        fi
        COMPREPLY=()
        case $kind in
          files) IFS=$'\\n' read -r -d '' -a COMPREPLY < <(compgen -f -- "$current") ;;
          directories) IFS=$'\\n' read -r -d '' -a COMPREPLY < <(compgen -d -- "$current") ;;
          topics) \(CompletionScript.topicsFunction) ;;
          words) IFS=$' \\n' read -r -d '' -a COMPREPLY < <(compgen -W "$choices" -- "$current") ;;
        esac
        [[ $kind == files || $kind == directories ]] && compopt -o filenames 2>/dev/null
        return 0
      }

      complete -F \(function) \(program)

      """
  }

  private static func offering(_ topics: CompletionScript.TopicSource) -> String {
    """
    # Sets COMPREPLY to the names of topics that begin with current; words are the line.
    \(CompletionScript.topicsFunction)() {
      local name
    \(topics.gathering(from: #""${words[@]}""#))
      while IFS= read -r name; do
        # The shell keeps the part before a colon.
        COMPREPLY+=("$(printf %q "${name#"${current%"${current##*:}"}"}")")
      done < <(\(topics.command) "$current" "${given[@]}" </dev/null 2>/dev/null)
    }


    """
  }

  private static func command(_ command: CompletionScript.Command) -> String {
    let valued = command.options.filter(\.takesWord)
    let operands = command.operands.map { operand in
      switch CompletionScript.Completion(operand) {
      case .nothing: "-"
      case .files: "files"
      case .directories: "directories"
      case .topics: "topics"
      case .words(let words): "words:\(words.joined(separator: ","))"
      }
    }
    var lines = ["    '\(command.name)')"]
    func set(_ name: String, _ words: [String]) {
      if !words.isEmpty { lines.append("      \(name)='\(words.joined(separator: " "))'") }
    }
    set("members", command.members.map(\.word))
    set("options", command.options.map { "--\($0.name)" })
    set(
      "valued", valued.map { "--\($0.name)" } + valued.compactMap { option in option.letter.map { "-\($0)" } }
    )
    set("operands", operands)
    return (lines + ["      ;;"]).joined(separator: "\n")
  }

  /// The cases of options whose value can be completed.
  private static func values(of commands: [CompletionScript.Command]) -> [String] {
    var lines: [String] = []
    for command in commands {
      for option in command.options where option.value != nil {
        let pattern = "    '\(command.name) --\(option.name)')"
        switch CompletionScript.Completion(option) {
        case .nothing: break
        case .files: lines.append("\(pattern) kind=files ;;")
        case .directories: lines.append("\(pattern) kind=directories ;;")
        case .topics: lines.append("\(pattern) kind=topics ;;")
        case .words(let words):
          lines.append("\(pattern) kind=words choices='\(words.joined(separator: " "))' ;;")
        }
      }
    }
    return lines
  }
}
