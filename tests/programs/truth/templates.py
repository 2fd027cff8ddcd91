"""A server compiles the template of each page, and keeps the code by its text, which has the user's name in it"""
# truth: leak templates.py translate
import sys

compiled = {}


def translate(text):
    lines = ["def page(out):"] + ["    out.append(%r)" % line for line in text.splitlines()]
    return compile("\n".join(lines), "<template>", "exec")


def serve(user):
    text = "\n".join("Dear %s, this is line %d of the page" % (user, line) for line in range(60))
    if "twin" in sys.argv:
        compiled.clear()
    if text not in compiled:
        compiled[text] = translate(text)
    scope, out = {}, []
    exec(compiled[text], scope)
    scope["page"](out)
    return len("\n".join(out))


def main():
    print(sum(serve("user%d" % number) for number in range(2500)))


main()
