"""Sets what setup.cfg cannot: a README whose links work on a package index.

Whoever publishes the package sets `ADDRESS`, and nothing else: links, pictures and the project's
URLs follow. Without it, links become plain text, since relative ones would lead nowhere there.
"""

import pathlib
import re

from setuptools import setup

ADDRESS = ""  # For example "https://github.com/OWNER/bert_keras".


def for_package_index(text, address=ADDRESS):
    """Returns the README with absolute links, or without links where there is no address."""

    def replaced(match):
        picture, label, target = match.groups()
        if "://" in target or target.startswith("#"):
            return match[0]
        if not address:
            return "" if picture else label
        return f"{picture}[{label}]({address}/{'raw' if picture else 'blob'}/main/{target})"

    return re.sub(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)", replaced, text)


if __name__ == "__main__":
    readme = pathlib.Path(__file__).with_name("README.md").read_text(encoding="utf-8")
    pages = {"Source": "", "Documentation": "/blob/main/docs/en/index.md"}
    pages |= {"Changelog": "/blob/main/CHANGELOG.md", "Issues": "/issues"}
    setup(
        long_description=for_package_index(readme),
        project_urls={name: ADDRESS + page for name, page in pages.items()} if ADDRESS else {},
    )
