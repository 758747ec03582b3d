"""Whether a sentence points at one project ("here", "in this repo"), or names all of them.

A sentence that points is never told in another project, however often it was said. In doubt a sentence points: that
costs one project a line, the opposite tells every project something false.
"""

from __future__ import annotations

import re

from stillroom.pattern import late

_EN = (
    r"repo(?:sitory|s)?|project|code ?base|mono ?repo|package|module|folder|director(?:y|ies)|workspace|work ?tree"
    r"|branch|service|app(?:lication)?|site|library|crate|plugin|team|cluster|server|stack|product|client|customer"
)
_DE = r"repo(?:sitory)?s?|projekte?s?|code(?:basis)?|pakete?s?|moduls?|ordners?|verzeichnis(?:ses)?|app|dienste?s?"
_ROMANCE = (
    r"repos?(?:itory)?|dépôt|projet|dossier|module|paquet|service|appli(?:cation)?|base de code"
    r"|repositori[oa]|proyecto|carpeta|módulo|paquete|servicio|aplicación|código"
    r"|projeto|pasta|pacote|serviço|aplicativo|progetto|cartella|modulo|pacchetto|servizio|applicazione|codice"
)
_SLAVIC = (
    r"репо|проект|код|пакет|модул|папк|сервис|приложени|repo|projek|kodzie|folder|moduł|pakie|katalog|usłu|aplikacj"
)
_THIS_ROMANCE = r"ce|cet|cette|notre|n?est[ea]|dest[ea]|nuestr[oa]|noss[oa]|quest[oa]|nostr[oa]"
_ENDS = r"(?=\s*(?:[.,;:!?)\"]|$))"
_POINTING = (
    rf"\bhere\b|\b(?:this|these|our|the current) (?:\w+ )?(?:{_EN})\b",
    r"\b(?:of|in|for|with|from) this\b(?! (?:kind|sort|type|way|form|size|nature|order)\b)",
    rf"\bhier(?:für|bei|in|mit)?\b|\b(?:dies(?:e[rmns]?|es)?|unser(?:e[rmns]?)?) (?:{_DE})\b",
    rf"\bici\b|\baqu[íi]\b|\bacá\b|\bqu[iì]{_ENDS}|\b(?:{_THIS_ROMANCE}) (?:{_ROMANCE})\b",
    rf"\b(?:здесь|тут)\b|\b(?:эт(?:от|ом|ого|ой|а|у|их)|наш\w*) (?:{_SLAVIC})",
    rf"\btutaj\b|\b(?:tym|tego|tej|ten|nasz\w*) (?:{_SLAVIC})",
    r"\bburada(?:ki)?\b|\bbu (?:proje|repo|depo|klasör|paket|uygulama|servis|modül)",
    r"यहाँ|यहां|(?:इस|हमारे) (?:रेपो|प्रोजेक्ट|परियोजना|रिपॉजिटरी|कोड|फ़ोल्डर|फोल्डर)",
    r"这里|這裡|这儿|(?:这个|這個|本|此|该|該|我们的|咱们的?)(?:仓库|倉庫|项目|專案|工程|库|代码库|程式庫|服务|模块|目录)",
    r"ここ|当(?:プロジェクト|リポジトリ)",
    r"この(?:リポジトリ|レポジトリ|プロジェクト|コード|パッケージ|フォルダ|アプリ|サービス|モジュール)",
    r"여기|이 ?(?:저장소|레포|리포|프로젝트|코드베이스|패키지|폴더|앱|서비스|모듈)",
)
_ALL_EN = r"(?:projects?|repos?\b|repositor(?:y|ies)|code ?bases?)"
_ALL_PROJECTS = (
    rf"\b(?:in|for|across|on|to) (?:all|every|any)(?: (?:of|my|our|the|one|other|single|and)){{0,4}} {_ALL_EN}",
    rf"\b(?:all|every)(?: of)? my {_ALL_EN}|\bno matter (?:which|what) (?:project|repo)",
    r"\bin (?:all|jed)\w*(?: mein\w*| unser\w*)? (?:projekt|repo)\w*",
    r"\b(?:dans|pour) (?:tous|toutes|chaque|n'importe quel)(?: (?:mes|nos|les))? (?:projets?|dépôts?|repos?)",
    r"\ben (?:tod[oa]s|cada|cualquier)(?: (?:mis|nuestros|los))? (?:proyectos?|repos?|repositorios?)",
    r"\bem (?:tod[oa]s|cada|qualquer)(?: (?:os|meus|nossos))* (?:projetos?|repos?|repositórios?)",
    r"\bin (?:tutti|ogni|qualsiasi)(?: (?:i|miei|nostri))* (?:progett[io]|repo)",
    r"во всех (?:моих |наших )?(?:проектах|репо\w*)|в (?:каждом|любом) (?:проекте|репо\w*)",
    r"\bwe wszystkich (?:moich |naszych )?(?:projektach|repo\w*)|\bw każdym (?:projekcie|repo\w*)",
    r"\b(?:tüm|bütün|her)(?: benim)? (?:proje|repo)\w*",
    r"(?:सभी|सब|हर) (?:मेरे )?(?:प्रोजेक्ट|परियोजना|रेपो)",
    r"(?:所有|全部|每个|每個|任何)(?:我的|的)?(?:项目|專案|仓库|倉庫|工程|代码库)|无论哪个项目",
    r"(?:すべて|全て|全部|あらゆる)の(?:プロジェクト|リポジトリ)|全(?:プロジェクト|リポジトリ)|どの(?:プロジェクト|リポジトリ)",
    r"모든 (?:내 )?(?:프로젝트|저장소|레포)|어느 프로젝트",
)
_EVERYWHERE = (
    r"\beverywhere\b|\büberall\b|\bpartout\b|\ben todas partes\b|\bem tod[oa] (?:o )?lugar\b"
    r"|\b(?:d?ovunque|dappertutto)\b|\b(?:везде|всюду)\b|\bwszędzie\b|\bher yerde\b|हर जगह|到处|どこでも|어디서나"
)
_POINTS = late("|".join(_POINTING), re.IGNORECASE)
_ANYWHERE = late(_EVERYWHERE, re.IGNORECASE)
_ALL = late("|".join(_ALL_PROJECTS), re.IGNORECASE)


def points(text: str) -> bool:
    """Whether the words point at the project in which they were said."""
    return _POINTS.search(text) is not None


def means_all(text: str) -> bool:
    """Whether the words themselves name all projects."""
    return _ALL.search(text) is not None


def says_everywhere(text: str) -> bool:
    """Whether the words say "everywhere", which may also be everywhere in one project."""
    return _ANYWHERE.search(text) is not None


__all__ = ["means_all", "points", "says_everywhere"]
